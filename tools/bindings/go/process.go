// SPDX-License-Identifier: BSD-2-Clause

package natra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// killAfter is how long natractl may take to end after its context has ended. A call
// that does not wait for another process takes milliseconds.
const killAfter = 20 * time.Second

// firstFile is the first descriptor of a child's that is not a standard one.
const firstFile = 3

var errClosed = &Error{Call: "events_read", Errno: syscall.EBADF,
	Text: "the reader of events is closed"}

// process is a `natractl call` that answers requests, a line of JSON for each.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	err     bytes.Buffer
	log     func(Level, string)
	version string
	ended   bool
}

// answer is a line of natractl's: the greeting, a line of the log or an answer.
type answer struct {
	Version string          `json:"version"`
	Log     *Level          `json:"log"`
	Line    string          `json:"line"`
	Errno   *syscall.Errno  `json:"errno"`
	Code    Code            `json:"code"`
	About   string          `json:"about"`
	Error   string          `json:"error"`
	Result  json.RawMessage `json:"result"`
}

// start runs natractl and reads its version. The child has file under the number that it
// has here, because errors name it.
func (n *natractl) start(ctx context.Context, call string, file *os.File) (*process, error) {
	p := &process{log: n.options.Log}
	p.cmd = exec.CommandContext(ctx, n.path, "--json", "call")
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = killAfter
	p.cmd.Stderr = &p.err
	if file != nil && file.Fd() >= firstFile {
		p.cmd.ExtraFiles = make([]*os.File, file.Fd()-firstFile+1)
		p.cmd.ExtraFiles[file.Fd()-firstFile] = file
	}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, n.broken(call, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, n.broken(call, err)
	}
	p.in, p.out = in, json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, n.broken(call, err)
	}
	if err := n.greeting(ctx, p, call); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// broken is the error of a natractl that does not do what it should.
func (n *natractl) broken(call string, err error) error {
	errno := syscall.EIO
	errors.As(err, &errno)
	return &Error{Call: call, Errno: errno, Text: fmt.Sprintf("%s: %v", n.path, err)}
}

// greeting reads the first line, from which the version follows. A natractl that does
// not greet is older than its command `call`.
func (n *natractl) greeting(ctx context.Context, p *process, call string) error {
	var first answer
	err := p.out.Decode(&first)
	if err == nil && first.Version != "" {
		p.version = first.Version
		return checkVersion(call, n.path, p.version)
	}
	if err := ended(ctx, call); err != nil {
		return err
	}
	p.end()
	var old struct{ Version string }
	text, err := exec.CommandContext(ctx, n.path, "--json", "version").Output()
	if err == nil && json.Unmarshal(text, &old) == nil && old.Version != "" {
		return &Error{Call: call, Errno: syscall.EOPNOTSUPP, Text: fmt.Sprintf(
			"%s %s is older than this package, which needs %s and its command 'call'",
			n.path, old.Version, Needs)}
	}
	return n.broken(call, errors.New("is no natractl: "+p.complaint()))
}

// complaint is the first line that natractl, which has ended, wrote to stderr.
func (p *process) complaint() string {
	line, _, _ := strings.Cut(p.err.String(), "\n")
	if line == "" {
		return "it says nothing"
	}
	return line
}

// ask sends a request and waits for its answer.
func (p *process) ask(ctx context.Context, call string, a args, result any) error {
	request := args{"call": call}
	for key, value := range a {
		request[key] = value
	}
	line, err := json.Marshal(request)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	var last answer
	for err == nil && last.Errno == nil {
		last = answer{}
		if err = p.out.Decode(&last); err == nil && last.Log != nil && p.log != nil {
			p.log(*last.Log, last.Line)
		}
	}
	if err != nil {
		return p.died(ctx, call, err)
	}
	if *last.Errno != 0 {
		return failed(ctx, call, *last.Errno, last.Code, last.About, last.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(last.Result, result); err != nil {
		return &Error{Call: call, Errno: syscall.EIO,
			Text: fmt.Sprintf("the answer of natractl %s: %v", p.version, err)}
	}
	return nil
}

// died is the error of a natractl that did not answer: a context ended it, or it broke.
func (p *process) died(ctx context.Context, call string, err error) error {
	if err := ended(ctx, call); err != nil {
		return err
	}
	p.end()
	return &Error{Call: call, Errno: syscall.EIO,
		Text: fmt.Sprintf("natractl did not answer (%v): %s", err, p.complaint())}
}

// end lets natractl end, which it does when there are no more requests.
func (p *process) end() {
	if p.ended {
		return
	}
	p.ended = true
	p.in.Close()
	// Its answer, or that there was none, has been seen already.
	_ = p.cmd.Wait()
}
