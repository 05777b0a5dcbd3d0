package main

import (
	"errors"
	"os"

	"github.com/agent-container/agent-container/spec"
)

// sshKeyPath is the container's own key, with which it shows itself to git
// servers. It is on the ssh volume, and in no image and on no host.
func (g *guest) sshKeyPath() string { return g.ssh(spec.SSHKeyFile) }

// makeSSHKey sees to the container's own key: made once, when it is first
// wanted.
func (g *guest) makeSSHKey() error {
	if exists(g.sshKeyPath()) {
		return publishKey(g.sshKeyPath())
	}
	return g.newKey(g.sshKeyPath())
}

// sshKey makes the container's own key and prints its public half:
//
//	ssh-key show     makes it unless there is one
//	ssh-key rotate   makes a new one; what the old one was registered for is lost
func (g *guest) sshKey(args []string) error {
	var err error
	switch {
	case len(args) == 1 && args[0] == "show":
		err = g.makeSSHKey()
	case len(args) == 1 && args[0] == "rotate":
		err = g.newKey(g.sshKeyPath())
	default:
		return errors.New("usage: ssh-key show | rotate")
	}
	if err != nil {
		return err
	}
	public, err := os.ReadFile(g.sshKeyPath() + ".pub")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(public)
	return err
}
