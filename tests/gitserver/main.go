// Command gitserver is a git server with faults, for tests: the real git
// http-backend over TLS, a store for LFS, and answers as broken servers give
// them. The first part of a request's path says how it is answered:
//
//	/open/REPO.git      to anybody
//	/private/REPO.git   to whoever has the token
//	/stall/REPO.git     never
//	/cut/REPO.git       the pack ends in the middle
//	/away/REPO.git      a redirect to the same repository, private, at the other port
//
// Every request is kept as a line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// server is what the handlers share.
type server struct {
	root  string // holds repos/ and lfs/
	token string
	other string // host:port of the other listener

	mu  sync.Mutex
	log *os.File
}

func main() {
	s := &server{}
	listen := flag.String("listen", ":8443", "`address` to serve on")
	second := flag.String("second", ":8444", "another `address`, which is another host to git")
	certificate := flag.String("certificate", "", "PEM `file` of certificate and key")
	requests := flag.String("requests", "", "`file` for the requests")
	flag.StringVar(&s.root, "root", "", "`directory` with repos/, lfs/ and token, a file with what opens /private")
	flag.StringVar(&s.other, "other", "", "`host:port` of the second address, for redirects")
	flag.Parse()
	if err := s.serve(*listen, *second, *certificate, *requests); err != nil {
		fmt.Fprintln(os.Stderr, "gitserver:", err)
		os.Exit(1)
	}
}

func (s *server) serve(listen, second, certificate, requests string) error {
	token, err := os.ReadFile(filepath.Join(s.root, "token"))
	if err != nil {
		return err
	}
	s.token = string(token)
	if s.log, err = os.OpenFile(requests, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	failed := make(chan error, 2)
	for _, address := range []string{listen, second} {
		go func() { failed <- http.ListenAndServeTLS(address, certificate, certificate, s) }()
	}
	stop := make(chan os.Signal, 1) // process 1 of a container ignores what it does not handle
	signal.Notify(stop, syscall.SIGTERM)
	select {
	case err := <-failed:
		return err
	case <-stop:
		return nil
	}
}

// request is one line of the log.
type request struct {
	Host  string `json:"host"`
	Path  string `json:"path"`
	Token bool   `json:"token"` // whether it came with the right token
	Auth  bool   `json:"auth"`  // whether it came with any credential
}

// ServeHTTP answers as the first part of the path says.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, password, auth := r.BasicAuth()
	token := auth && password == s.token
	s.keep(request{r.Host, r.URL.Path, token, auth})
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch kind {
	case "open":
		s.git(w, r, kind)
	case "private":
		if !token {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "a token, please", http.StatusUnauthorized)
			return
		}
		s.git(w, r, kind)
	case "stall":
		<-r.Context().Done()
	case "cut":
		if !strings.HasSuffix(rest, "/git-upload-pack") {
			s.git(w, r, kind)
			return
		}
		s.git(&cutter{ResponseWriter: w, left: 20 << 10}, r, kind)
	case "away":
		http.Redirect(w, r, "https://"+s.other+"/private/"+rest+"?"+r.URL.RawQuery, http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func (s *server) keep(r request) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.log.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// git hands a request to the real thing, but for what is LFS's.
func (s *server) git(w http.ResponseWriter, r *http.Request, kind string) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/lfs/objects/batch"):
		s.batch(w, r)
	case strings.Contains(r.URL.Path, "/info/lfs/get/"):
		http.ServeFile(w, r, filepath.Join(s.root, "lfs", filepath.Base(r.URL.Path)))
	default:
		h := cgi.Handler{
			Path: "/usr/lib/git-core/git-http-backend", Root: "/" + kind,
			Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(s.root, "repos"), "GIT_HTTP_EXPORT_ALL=1"},
		}
		h.ServeHTTP(w, r)
	}
}

// batch answers git-lfs where the objects are: here, if at all.
func (s *server) batch(w http.ResponseWriter, r *http.Request) {
	type object struct {
		OID     string         `json:"oid"`
		Size    int64          `json:"size"`
		Actions map[string]any `json:"actions,omitempty"`
		Error   map[string]any `json:"error,omitempty"`
	}
	var asked, answer struct {
		Transfer string   `json:"transfer,omitempty"`
		Objects  []object `json:"objects"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer.Transfer = "basic"
	for _, o := range asked.Objects {
		if _, err := os.Stat(filepath.Join(s.root, "lfs", filepath.Base(o.OID))); err != nil {
			o.Error = map[string]any{"code": 404, "message": "no such object"}
		} else {
			base, _, _ := strings.Cut(r.URL.Path, "/info/lfs/")
			o.Actions = map[string]any{"download": map[string]any{"href": "https://" + r.Host + base + "/info/lfs/get/" + o.OID}}
		}
		answer.Objects = append(answer.Objects, o)
	}
	w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
	_ = json.NewEncoder(w).Encode(answer) // the client sees what is missing
}

// cutter passes on so many bytes and then cuts the connection.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	n, err := c.ResponseWriter.Write(p)
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	return n, err
}
