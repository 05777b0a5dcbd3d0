package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// gitServer is what stands beside a deployment as its services "git", over TLS,
// and "gitssh": the real git http-backend and the real sshd, on repositories that
// the test makes.
type gitServer struct {
	u     *user
	token string // opens https://git:8443/private/...
}

// gitServerBinary builds the server once.
var gitServerBinary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../build/gitserver")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "../gitserver")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// withGit puts a git server beside the deployments of the user, whose images are
// the stub's, and makes its certificate one that they trust.
func (u *user) withGit() *gitServer {
	u.t.Helper()
	g := &gitServer{u: u, token: "canary-" + strings.TrimPrefix(u.name, "e2e-") + "-token"}
	binary, err := gitServerBinary()
	if err != nil {
		u.t.Fatal(err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		u.t.Fatal(err)
	}
	u.write("git/gitserver", string(content))
	if err := os.Chmod(u.path("git/gitserver"), 0o755); err != nil {
		u.t.Fatal(err)
	}
	u.write("git/token", g.token)
	u.write("git/repos/.keep", "")
	u.write("git/lfs/.keep", "")
	u.write("githome/.gitconfig", "[safe]\n\tdirectory = *\n") // the repositories are the servers' user's
	certificate := u.certificate("git")
	u.write("git/sshd_config", "Port 2222\nHostKey /git/host_key\nAuthorizedKeysFile /git/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n")
	u.write("git/authorized_keys", "")
	u.hostCommand("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", u.path("git/host_key"))
	u.write("config/settings.yaml", "ca_bundle: "+u.write("ca.pem", systemBundle(u.t)+"\n"+certificate)+
		"\ngit:\n  credentials:\n    git:8443: CORP_TOKEN\n")
	g.owned()
	g.besides(u.name)
	return g
}

// besides gives the deployment name the two services.
func (g *gitServer) besides(name string) {
	g.u.t.Helper()
	image := g.u.built("--agent", "claude")[0]
	service := func(name, entrypoint, port string) string {
		return fmt.Sprintf("  %s:\n    image: %s\n    pull_policy: never\n    user: \"1000\"\n    entrypoint: %s\n    volumes: [\"%s:/git\"]\n"+
			"    healthcheck:\n      test: [\"CMD\", \"bash\", \"-c\", \"exec 3<>/dev/tcp/127.0.0.1/%s\"]\n      interval: 300ms\n      retries: 60\n",
			name, image, entrypoint, g.u.path("git"), port)
	}
	https, err := json.Marshal([]string{"/git/gitserver", "-root", "/git", "-certificate", "/git/tls.pem", "-requests", "/git/requests", "-other", "git:8444"})
	if err != nil {
		g.u.t.Fatal(err)
	}
	g.u.write("config/"+name+".services.yaml", "services:\n"+service("git", string(https), "8443")+
		service("gitssh", `["/usr/sbin/sshd", "-D", "-e", "-f", "/git/sshd_config"]`, "2222"))
}

// owned gives the servers, which are the agent user, what the test has made.
func (g *gitServer) owned() { g.u.hostCommand("chown", "-R", "1000:1000", g.u.path("git")) }

// hostCommand runs a command of this machine, git without anybody's
// configuration.
func (u *user) hostCommand(argv ...string) string {
	u.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.path("githome"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com"}
	r := finish(u.t, cmd)
	if r.code != 0 {
		u.t.Fatal(r)
	}
	return strings.TrimSpace(r.stdout)
}

// repository makes a bare repository with one commit of these files on main,
// and a tag v1 there; without files it has no commit. It returns the commit.
func (g *gitServer) repository(name string, files map[string]string, setUp ...func(dir string)) string {
	g.u.t.Helper()
	work, bare := g.u.path("work", name), g.u.path("git", "repos", name+".git")
	git := func(args ...string) string { return g.u.hostCommand(append([]string{"git", "-C", work}, args...)...) }
	g.u.hostCommand("git", "init", "-q", "-b", "main", work)
	for path, content := range files {
		g.u.write(filepath.Join("work", name, path), content)
	}
	for _, more := range setUp {
		more(work)
	}
	head := ""
	if len(files) > 0 {
		git("add", "--all")
		git("commit", "-q", "-m", "first")
		git("tag", "v1")
		head = git("rev-parse", "HEAD")
	}
	g.u.hostCommand("git", "init", "-q", "--bare", "-b", "main", bare)
	// Any commit may be asked for, as the well-known servers let one.
	g.u.hostCommand("git", "-C", bare, "config", "uploadpack.allowAnySHA1InWant", "true")
	if head != "" {
		git("push", "-q", "--tags", bare, "main")
	}
	g.owned()
	return head
}

// lfsObject stores content where LFS asks for it, and returns the pointer that
// git keeps in its place.
func (g *gitServer) lfsObject(content string, stored bool) string {
	sum := sha256.Sum256([]byte(content))
	oid := hex.EncodeToString(sum[:])
	if stored {
		g.u.write("git/lfs/"+oid, content)
		g.owned()
	}
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content))
}

// gitRequest is what the server keeps of a request.
type gitRequest struct {
	Host, Path  string
	Token, Auth bool
}

// requests are those that the server has got.
func (g *gitServer) requests() []gitRequest {
	g.u.t.Helper()
	content, err := os.ReadFile(g.u.path("git/requests"))
	if err != nil {
		g.u.t.Fatal(err)
	}
	var list []gitRequest
	for _, line := range bytes.Split(bytes.TrimSpace(content), []byte("\n")) {
		var r gitRequest
		if err := json.Unmarshal(line, &r); err != nil {
			g.u.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// certificate makes a certificate for host, writes it with its key for the
// server and returns it.
func (u *user) certificate(host string) string {
	u.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		u.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		u.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		u.t.Fatal(err)
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	u.write("git/tls.pem", public+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return public
}

// systemBundle is what this machine trusts: images may have to be built with it.
func systemBundle(t *testing.T) string {
	t.Helper()
	for _, path := range []string{os.Getenv("SSL_CERT_FILE"), os.Getenv("NODE_EXTRA_CA_CERTS"), "/etc/ssl/certs/ca-certificates.crt"} {
		if content, err := os.ReadFile(path); err == nil {
			return string(content)
		}
	}
	return ""
}
