// Command modelserver stands in for the paid model APIs, so that the real
// agents can be run in tests without an account and with a known outcome.
//
// It speaks the Anthropic Messages API and the OpenAI Responses API. The task
// given to the agent scripts what the "model" does; see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", ":8080", "`address` to serve on")
	requests := flag.String("requests", "", "append every request, with its full text, to this `file` as JSON lines")
	check := flag.String("check", "", "probe this `URL`, exit 0 when it answers 200 and 1 otherwise")
	flag.Parse()

	var err error
	if *check != "" {
		err = probe(*check)
	} else {
		err = serve(*listen, *requests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

// probe is the health check of the image, which holds no other program that
// could make a request. It returns nil only for an answer of 200.
func probe(url string) error {
	client := &http.Client{Timeout: 3 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil
}

// serve runs the server until SIGINT or SIGTERM. It handles the signals itself
// because as process 1 of a container it would otherwise not be stopped by
// them, and it closes connections at once because some of them hang on purpose.
func serve(listen, requestsFile string) error {
	log := &requestLog{lines: os.Stdout}
	if requestsFile != "" {
		file, err := os.OpenFile(requestsFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer file.Close()
		log.full = file
	}
	srv := &http.Server{
		Addr:              listen,
		Handler:           newHandler(log),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { srv.Close() })
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
