// SPDX-License-Identifier: BSD-2-Clause

//go:build cgo

package natra

/*
#include <errno.h>
#include <stdlib.h>
#include <natra/natra.h>

extern void natraGoLog(uintptr_t call, int level, char *line);
extern bool natraGoCancelled(uintptr_t call);
extern void natraGoAttachment(uintptr_t list, struct natra_info *info);
extern void natraGoStats(uintptr_t list, struct natra_info *info,
			 struct natra_stats *stats);
extern void natraGoNeighbour(uintptr_t list, struct natra_neighbour *neighbour);
extern void natraGoSubnet(uintptr_t list, char *cidr);
extern void natraGoClass(uintptr_t list, struct natra_class *class_);

static void log_fn(void *arg, enum natra_log_level level, const char *line)
{
	natraGoLog((uintptr_t)arg, (int)level, (char *)line);
}

static bool cancelled_fn(void *arg)
{
	return natraGoCancelled((uintptr_t)arg);
}

static int attachment_fn(void *arg, const struct natra_info *info)
{
	natraGoAttachment((uintptr_t)arg, (struct natra_info *)info);
	return 0;
}

static int stats_fn(void *arg, const struct natra_info *info,
		    const struct natra_stats *stats)
{
	natraGoStats((uintptr_t)arg, (struct natra_info *)info,
		     (struct natra_stats *)stats);
	return 0;
}

static int neighbour_fn(void *arg, const struct natra_neighbour *neighbour)
{
	natraGoNeighbour((uintptr_t)arg, (struct natra_neighbour *)neighbour);
	return 0;
}

static int subnet_fn(void *arg, const char *cidr)
{
	natraGoSubnet((uintptr_t)arg, (char *)cidr);
	return 0;
}

static int class_fn(void *arg, const struct natra_class *class_)
{
	natraGoClass((uintptr_t)arg, (struct natra_class *)class_);
	return 0;
}

// A Go program may hand on numbers, but no number as a pointer: so these take it.
static int open_handle(struct natra **ret_n, const char *bpffs_path,
		       bool keep_programs, bool refuse_other_abi, bool wants_log,
		       uintptr_t call)
{
	struct natra_open_opts opts = NATRA_INIT(opts);

	opts.bpffs_path = bpffs_path;
	opts.keep_programs = keep_programs;
	opts.refuse_other_abi = refuse_other_abi;
	opts.log_fn = wants_log ? log_fn : NULL;
	opts.log_arg = (void *)call;
	opts.cancelled_fn = cancelled_fn;
	opts.cancelled_arg = (void *)call;
	return natra_open(ret_n, &opts);
}

static int foreach_attachment(struct natra *n, uintptr_t list)
{
	return natra_foreach_attachment(n, attachment_fn, (void *)list);
}

static int foreach_stats(struct natra *n, uintptr_t list)
{
	return natra_foreach_stats(n, stats_fn, (void *)list);
}

static int foreach_neighbour(struct natra *n, const char *id, uintptr_t list)
{
	return natra_foreach_neighbour(n, id, neighbour_fn, (void *)list);
}

static int foreach_subnet(struct natra *n, const char *id, uintptr_t list)
{
	return natra_foreach_subnet(n, id, subnet_fn, (void *)list);
}

static int foreach_class(struct natra *n, const char *id, uintptr_t list)
{
	return natra_foreach_class(n, id, class_fn, (void *)list);
}
*/
import "C"

import (
	"context"
	"os"
	"runtime"
	"runtime/cgo"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
	"unsafe"
)

// library is the back end that calls libnatra. Each call has a handle of its own, so that
// goroutines need not wait for each other, and an error text is that of its call.
type library struct{ options Options }

var openLibrary = func(options Options) (backend, error) {
	l := &library{options}
	version, _ := l.version()
	if err := checkVersion("open", "libnatra", version); err != nil {
		return nil, err
	}
	return l, nil
}

// call is a call that runs, as its callbacks know it.
type call struct {
	ctx context.Context
	log func(Level, string)
}

// text copies a string of C's; what is not UTF-8 becomes U+FFFD, as natractl writes it.
func text(s *C.char) string {
	t := C.GoString(s)
	if !utf8.ValidString(t) {
		return string([]rune(t))
	}
	return t
}

//export natraGoLog
func natraGoLog(h C.uintptr_t, level C.int, line *C.char) {
	cgo.Handle(h).Value().(*call).log(Level(level), text(line))
}

//export natraGoCancelled
func natraGoCancelled(h C.uintptr_t) C.bool {
	return C.bool(cgo.Handle(h).Value().(*call).ctx.Err() != nil)
}

// memory is what C needs until the end of a call: what is allocated for it, and files of which it has
// the descriptors, which Go would close when nobody has the files any more.
type memory struct {
	blocks []unsafe.Pointer
	files  []*os.File
}

func (m *memory) free() {
	runtime.KeepAlive(m.files)
	for _, block := range m.blocks {
		C.free(block)
	}
}

// always returns a string of C's.
func (m *memory) always(s string) *C.char {
	c := C.CString(s)
	m.blocks = append(m.blocks, unsafe.Pointer(c))
	return c
}

// given returns NULL for "".
func (m *memory) given(s string) *C.char {
	if s == "" {
		return nil
	}
	return m.always(s)
}

// list returns NULL for an empty list.
func (m *memory) list(texts []string) **C.char {
	if len(texts) == 0 {
		return nil
	}
	size := C.size_t(len(texts)) * C.size_t(unsafe.Sizeof((*C.char)(nil)))
	block := C.malloc(size)
	m.blocks = append(m.blocks, block)
	array := unsafe.Slice((**C.char)(block), len(texts))
	for i, s := range texts {
		array[i] = m.always(s)
	}
	return (**C.char)(block)
}

// open opens a handle of the library's. The caller closes it, and deletes h.
func (l *library) open(ctx context.Context, name string) (n *C.struct_natra, h cgo.Handle, err error) {
	var m memory
	defer m.free()
	h = cgo.NewHandle(&call{ctx, l.options.Log})
	r := C.open_handle(&n, m.given(l.options.BPFFSPath), C.bool(l.options.KeepPrograms),
		C.bool(l.options.RefuseOtherABI), l.options.Log != nil, C.uintptr_t(h))
	if r < 0 {
		h.Delete()
		return nil, 0, failed(ctx, name, syscall.Errno(-r), CodeNone, "", "")
	}
	return n, h, nil
}

// call runs f with a handle of its own. The result of f is that of the library.
func (l *library) call(ctx context.Context, name string, f func(n *C.struct_natra, m *memory) C.int) error {
	if err := ended(ctx, name); err != nil {
		return err
	}
	n, h, err := l.open(ctx, name)
	if err != nil {
		return err
	}
	defer h.Delete()
	defer C.natra_close(n)
	var m memory
	defer m.free()
	if r := f(n, &m); r < 0 {
		return failedWith(ctx, n, name, r)
	}
	return nil
}

func failedWith(ctx context.Context, n *C.struct_natra, name string, r C.int) error {
	return failed(ctx, name, syscall.Errno(-r), Code(C.natra_error_code(n)),
		text(C.natra_error_about(n)), text(C.natra_error(n)))
}

// foreachSubnetOf calls the function behind h for each subnet.
func foreachSubnetOf(n *C.struct_natra, id *C.char, h cgo.Handle) C.int {
	return C.foreach_subnet(n, id, C.uintptr_t(h))
}

// foreachClassOf calls the function behind h for each class.
func foreachClassOf(n *C.struct_natra, id *C.char, h cgo.Handle) C.int {
	return C.foreach_class(n, id, C.uintptr_t(h))
}

func (l *library) attach(ctx context.Context, t *Target, p *Policy) (info Info, err error) {
	err = l.call(ctx, "attach", func(n *C.struct_natra, m *memory) C.int {
		target, policy, c := m.target(t), m.policy(p), newInfo()
		r := C.natra_attach(n, &target, &policy, &c)
		if r == 0 {
			info = l.infoOf(n, &c)
		}
		return r
	})
	return info, err
}

func (l *library) configure(ctx context.Context, id string, p *Policy) error {
	return l.call(ctx, "configure", func(n *C.struct_natra, m *memory) C.int {
		policy := m.policy(p)
		return C.natra_configure(n, m.always(id), &policy)
	})
}

func (l *library) upgrade(ctx context.Context, id string) error {
	return l.call(ctx, "upgrade", func(n *C.struct_natra, m *memory) C.int {
		return C.natra_upgrade(n, m.always(id))
	})
}

func (l *library) detach(ctx context.Context, t *Target) (removed bool, err error) {
	err = l.call(ctx, "detach", func(n *C.struct_natra, m *memory) C.int {
		target := m.target(t)
		r := C.natra_detach(n, &target)
		removed = r > 0
		return r
	})
	return removed, err
}

func (l *library) check(ctx context.Context, id string, p *Policy) error {
	return l.call(ctx, "check", func(n *C.struct_natra, m *memory) C.int {
		if p == nil {
			return C.natra_check(n, m.always(id), nil)
		}
		policy := m.policy(p)
		return C.natra_check(n, m.always(id), &policy)
	})
}

func (l *library) query(ctx context.Context, id string) (info Info, err error) {
	err = l.call(ctx, "query", func(n *C.struct_natra, m *memory) C.int {
		c := newInfo()
		r := C.natra_query(n, m.always(id), &c)
		if r == 0 {
			info = l.infoOf(n, &c)
		}
		return r
	})
	return info, err
}

func (l *library) find(ctx context.Context, t *Target) (id string, err error) {
	err = l.call(ctx, "find", func(n *C.struct_natra, m *memory) C.int {
		var ret [C.NATRA_ID_MAX + 1]C.char
		target := m.target(t)
		r := C.natra_find(n, &target, &ret[0], C.size_t(len(ret)))
		if r == 0 {
			id = text(&ret[0])
		}
		return r
	})
	return id, err
}

func (l *library) stats(ctx context.Context, id string) (stats Stats, err error) {
	err = l.call(ctx, "stats", func(n *C.struct_natra, m *memory) C.int {
		c := newStats()
		r := C.natra_stats(n, m.always(id), &c)
		if r == 0 {
			stats = statsOf(&c)
		}
		return r
	})
	return stats, err
}

// walk runs a function of the library's that calls back for each item of a list. add is
// what the callback calls.
func walk[T any](ctx context.Context, l *library, name string, add T, f func(n *C.struct_natra, m *memory, list C.uintptr_t) C.int) error {
	return l.call(ctx, name, func(n *C.struct_natra, m *memory) C.int {
		h := cgo.NewHandle(add)
		defer h.Delete()
		return f(n, m, C.uintptr_t(h))
	})
}

//export natraGoAttachment
func natraGoAttachment(h C.uintptr_t, info *C.struct_natra_info) {
	cgo.Handle(h).Value().(func(*C.struct_natra_info))(info)
}

//export natraGoStats
func natraGoStats(h C.uintptr_t, info *C.struct_natra_info, stats *C.struct_natra_stats) {
	cgo.Handle(h).Value().(func(*C.struct_natra_info, *C.struct_natra_stats))(info, stats)
}

//export natraGoNeighbour
func natraGoNeighbour(h C.uintptr_t, neighbour *C.struct_natra_neighbour) {
	cgo.Handle(h).Value().(func(*C.struct_natra_neighbour))(neighbour)
}

//export natraGoSubnet
func natraGoSubnet(h C.uintptr_t, cidr *C.char) {
	cgo.Handle(h).Value().(func(*C.char))(cidr)
}

//export natraGoClass
func natraGoClass(h C.uintptr_t, class *C.struct_natra_class) {
	cgo.Handle(h).Value().(func(*C.struct_natra_class))(class)
}

// The lists are read when a walk has ended, since the library is asked again for them; not when it has
// failed, because the handle has the error of its last call alone.
func (l *library) foreachStats(ctx context.Context) (all []InfoStats, err error) {
	add := func(info *C.struct_natra_info, stats *C.struct_natra_stats) {
		one := InfoStats{Info: infoAlone(info)}
		if stats != nil {
			s := statsOf(stats)
			one.Stats = &s
		}
		all = append(all, one)
	}
	err = walk(ctx, l, "foreach_stats", add, func(n *C.struct_natra, m *memory, list C.uintptr_t) C.int {
		r := C.foreach_stats(n, list)
		if r < 0 {
			return r
		}
		for i := range all {
			l.addLists(n, &all[i].Info)
		}
		return r
	})
	return all, err
}

func (l *library) foreachAttachment(ctx context.Context) (all []Info, err error) {
	add := func(info *C.struct_natra_info) { all = append(all, infoAlone(info)) }
	err = walk(ctx, l, "foreach_attachment", add, func(n *C.struct_natra, m *memory, list C.uintptr_t) C.int {
		r := C.foreach_attachment(n, list)
		if r < 0 {
			return r
		}
		for i := range all {
			l.addLists(n, &all[i])
		}
		return r
	})
	return all, err
}

func (l *library) foreachNeighbour(ctx context.Context, id string) (all []Neighbour, err error) {
	add := func(c *C.struct_natra_neighbour) { all = append(all, neighbourOf(c)) }
	err = walk(ctx, l, "foreach_neighbour", add, func(n *C.struct_natra, m *memory, list C.uintptr_t) C.int {
		return C.foreach_neighbour(n, m.always(id), list)
	})
	return all, err
}

func (l *library) foreachSubnet(ctx context.Context, id string) (all []string, err error) {
	add := func(cidr *C.char) { all = append(all, text(cidr)) }
	err = walk(ctx, l, "foreach_subnet", add, func(n *C.struct_natra, m *memory, list C.uintptr_t) C.int {
		return C.foreach_subnet(n, m.always(id), list)
	})
	return all, err
}

func (l *library) top(ctx context.Context, id string, d Direction) (all []Flow, err error) {
	err = l.call(ctx, "top", func(n *C.struct_natra, m *memory) C.int {
		var flows [C.NATRA_FLOWS_MAX]C.struct_natra_flow
		length := C.size_t(len(flows))
		r := C.natra_top(n, m.always(id), C.enum_natra_direction(d), &flows[0], &length)
		for i := 0; r == 0 && i < int(length); i++ {
			all = append(all, flowOf(&flows[i]))
		}
		return r
	})
	return all, err
}

func (l *library) recordUnshaped(ctx context.Context, t *Target, p *Policy, reason string) error {
	return l.call(ctx, "record_unshaped", func(n *C.struct_natra, m *memory) C.int {
		target, policy := m.target(t), m.policy(p)
		return C.natra_record_unshaped(n, &target, &policy, m.always(reason))
	})
}

func (l *library) findLeftovers(ctx context.Context, t *Target) (found Leftovers, err error) {
	err = l.call(ctx, "find_leftovers", func(n *C.struct_natra, m *memory) C.int {
		target := m.target(t)
		var c C.struct_natra_leftovers
		c.sz = C.sizeof_struct_natra_leftovers
		r := C.natra_find_leftovers(n, &target, &c)
		if r == 0 {
			found = Leftovers{text(&c.host_ifname[0]), text(&c.ifb_ifname[0]),
				time.Duration(c.waiting_ns), bool(c.limits_ingress),
				bool(c.limits_egress), bool(c.is_htb)}
		}
		return r
	})
	return found, err
}

func (l *library) drainLeftovers(ctx context.Context, t *Target) error {
	return l.call(ctx, "drain_leftovers", func(n *C.struct_natra, m *memory) C.int {
		target := m.target(t)
		return C.natra_drain_leftovers(n, &target)
	})
}

func (l *library) removeLeftovers(ctx context.Context, t *Target) error {
	return l.call(ctx, "remove_leftovers", func(n *C.struct_natra, m *memory) C.int {
		target := m.target(t)
		return C.natra_remove_leftovers(n, &target)
	})
}

func (l *library) gc(ctx context.Context, network *string, keep []string) (removed int, err error) {
	err = l.call(ctx, "gc", func(n *C.struct_natra, m *memory) C.int {
		var name *C.char
		var count C.size_t
		if network != nil {
			name = m.always(*network)
		}
		r := C.natra_gc(n, name, m.list(keep), C.size_t(len(keep)), &count)
		if r == 0 {
			removed = int(count)
		}
		return r
	})
	return removed, err
}

func (l *library) probe(ctx context.Context) (features Features, err error) {
	err = l.call(ctx, "probe", func(n *C.struct_natra, m *memory) C.int {
		var c C.struct_natra_features
		c.sz = C.sizeof_struct_natra_features
		r := C.natra_probe(n, &c)
		if r == 0 {
			features = featuresOf(&c)
		}
		return r
	})
	return features, err
}

func (l *library) status(ctx context.Context) error {
	return l.call(ctx, "status", func(n *C.struct_natra, m *memory) C.int {
		return C.natra_status(n)
	})
}

func (l *library) policyCheck(p *Policy) error {
	return l.call(context.Background(), "policy_check", func(n *C.struct_natra, m *memory) C.int {
		policy := m.policy(p)
		return C.natra_policy_check(n, &policy)
	})
}

func (l *library) policyAnnotate(ctx context.Context, p *Policy, a Annotations) (policy Policy, err error) {
	err = l.call(ctx, "policy_annotate", func(n *C.struct_natra, m *memory) C.int {
		c, asked := m.policy(p), m.annotations(&a)
		var classes *C.struct_natra_class
		r := C.natra_policy_annotate(n, &c, &asked, &classes)
		if r < 0 {
			return r
		}
		policy = policyOf(&c)
		policy.ShapedSubnets, policy.UnshapedSubnets = p.ShapedSubnets, p.UnshapedSubnets
		if c.automatic_group != nil {
			policy.AutomaticGroup = p.AutomaticGroup
		}
		list := unsafe.Slice(c.classes, c.classes_len)
		for i := range list {
			policy.Classes = append(policy.Classes, classOf(&list[i]))
		}
		C.free(unsafe.Pointer(classes))
		return r
	})
	return policy, err
}

// The file of namespaces is read by natractl's code alone.
func (l *library) policyAnnotatePod(ctx context.Context, p *Policy, a Annotations, pod Pod) (PodPolicy, error) {
	n, err := openNatractl(l.options)
	if err != nil {
		return PodPolicy{}, err
	}
	return n.policyAnnotatePod(ctx, p, a, pod)
}

func (l *library) parse(what, s string) (uint64, error) {
	var m memory
	defer m.free()
	var number C.uint64_t
	var r C.int
	switch what {
	case "rate":
		r = C.natra_parse_rate(m.always(s), &number)
	case "size":
		r = C.natra_parse_size(m.always(s), &number)
	default:
		r = C.natra_parse_time(m.always(s), &number)
	}
	if r < 0 {
		return 0, failed(context.Background(), "parse_"+what, syscall.Errno(-r), CodeNone, "", "")
	}
	return uint64(number), nil
}

// version has to work with libraries of any age. Theirs may end in more than numbers.
func (l *library) version() (string, error) {
	return strings.TrimSpace(text(C.natra_version())), nil
}
