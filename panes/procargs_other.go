//go:build !darwin

package panes

import "errors"

// exactArguments is for systems where ps is read and the arguments are to be had.
func exactArguments(int) ([]string, error) { return nil, errors.ErrUnsupported }
