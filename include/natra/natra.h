/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file natra.h
 * @brief libnatra: limit the bandwidth of a pod's interface without hurting its small flows.
 *
 * Directions are the pod's: *ingress* goes into the pod, *egress* out of it. The pod's is the
 * interface that the caller names: ingress is what it receives. If that is the host's end of
 * a veth, what goes into the pod is its *egress*. Every quantity has its unit in its name:
 * rates are bit/s, bursts bits, sizes bytes at layer 2, and times ns.
 *
 * Errors: a function that can fail returns 0 or a negative errno and leaves its `ret_`
 * parameters untouched on failure; natra_error() then has one line of text that names the
 * object, which is for people: natra_error_code() tells apart what has the same errno, and
 * natra_error_about() names it for programs; all three are forgotten when the handle's next
 * call begins. No signal ends a call with -EINTR; -ECANCELED is
 * returned only if the options of natra_open say so. The library never prints, never exits,
 * and changes nothing of the calling thread (network namespace, signal mask, umask). In the
 * process it sets libbpf's print function once, which then has natra's own lines of libbpf go
 * to natra's log, and others to the function that was set before. A program that sets its own
 * does so before it calls natra; else that gets natra's lines, too.
 *
 * Threads: one handle may be used by one thread at a time; two handles are independent, and
 * one may be used after fork(2). If the process is killed while another thread is in a call, a
 * child that was forked meanwhile keeps what that has locked until the child ends. Processes
 * may work on the same attachment at once: the library locks it. A call that changes
 * something, natra_foreach_group, and natra_check of a member of a group, or of what is just being
 * changed or seems to be wrong, wait 5 s for a process that keeps a lock (it may be stopped), and
 * a minute for a lock that several have one after the other; then it fails with -EBUSY, and
 * natra_error() names the process and what it has locked. A call may need several locks. Of
 * two processes that read limits and then change them, the last one's limits hold.
 *
 * Interruption: a process may be killed in any call. The interface is then as it was or as it
 * was to be, or natra_check tells what is missing; the same call, or natra_gc, mends it. (Of
 * its gso_max_segs, which limits nothing, natra_check says nothing.) No function may be
 * called from a signal handler, and a thread in a call must not be cancelled with
 * pthread_cancel(3). The library cannot be unloaded: dlclose(3) leaves it in place.
 *
 * State: all of it is pinned on bpffs, at the path of natra_open_opts, or else on the
 * one that pid 1 has at /sys/fs/bpf. In another mount namespace, such as the one that
 * `ip netns exec` makes, /sys/fs/bpf may be another directory. The library then uses
 * pid 1's directory through /proc/1/root; calls fail with -EPERM if it cannot be opened
 * and with -ENOTDIR if pid 1 has no such directory. In a user namespace other than the
 * first it uses the caller's own /sys/fs/bpf. Where there is no bpffs yet,
 * attaching mounts one, if the directory is empty (else -ENOTEMPTY). It stays mounted.
 *
 * Privileges: the library needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and to be the owner
 * of bpffs, which is root, or CAP_DAC_OVERRIDE. For interfaces in another network namespace,
 * for natra_probe and to mount bpffs it needs CAP_SYS_ADMIN, which implies the first two; for
 * pid 1's bpffs from another mount namespace also CAP_SYS_PTRACE, and CAP_SYS_CHROOT to mount
 * it. Without them any call that reads or changes state fails with -EPERM, or with -EACCES
 * where bpffs or the verifier refuses.
 *
 * Structs that the caller passes begin with their own size, so that an old program works with
 * a newer library. Initialise them with NATRA_INIT. A struct that a callback got may be shorter
 * or longer than the program knows it: only the program's own has its size. A size that the
 * struct never had is -EINVAL, and so is a member that a newer program has set and this library
 * does not know; what a newer program's struct has beyond the library's is not written. A newer
 * library may report values from an enum's *_MAX on, and a code in place of NATRA_CODE_NONE; a
 * program takes them as unknown. The *_name functions return NULL for what the library itself
 * does not know.
 *
 * Growth: a function keeps its arguments, and what it does with them. Whatever a later version
 * can be told besides is a member of a struct that the function gets already, or of
 * natra_open_opts if it concerns all calls of a handle, and 0 there means what was before; or it
 * is the argument of a new function, which gets a struct with `sz` for it. Each list of errnos
 * below may become longer: a program takes one that is not in it as a failure.
 *
 * @code
 * #include <natra/natra.h>
 * #include <stdio.h>
 *
 * int main(int argc, char **argv)
 * {
 *         struct natra_target target = NATRA_INIT(target);
 *         struct natra_policy policy = NATRA_INIT(policy);
 *         struct natra *n;
 *         int r;
 *
 *         if (argc != 2)
 *                 return 2;
 *         r = natra_open(&n, NULL);
 *         if (r < 0)
 *                 return 1;
 *
 *         target.id = "example";
 *         target.ifname = argv[1];
 *         policy.ingress_rate_bits_per_sec = 10000000;
 *         policy.egress_rate_bits_per_sec = 10000000;
 *
 *         r = natra_attach(n, &target, &policy, NULL);
 *         if (r < 0)
 *                 fprintf(stderr, "%s\n", natra_error(n));
 *         natra_close(n);
 *         return r < 0 ? 1 : 0;
 * }
 * @endcode
 */
#ifndef NATRA_NATRA_H
#define NATRA_NATRA_H

#include <stddef.h>
#include <stdint.h>

#include <natra/base.h>
#include <natra/errors.h>
#include <natra/leftovers.h>
#include <natra/text.h>
#include <natra/types.h>
#include <natra/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque handle; holds options and the last error text, no kernel state, no descriptor. */
struct natra;

/**
 * @brief Make a handle.
 * @param ret_n  the handle; free it with natra_close.
 * @param opts   NULL for the defaults; copied.
 * @return 0; -EINVAL unknown option, a wrong `sz` or a relative bpffs_path; -ENOMEM; with
 *         refuse_other_abi -ESTALE, or what reading bpffs failed with, which is logged. There
 *         is no handle to ask for a text then.
 */
NATRA_API int natra_open(struct natra **ret_n,
			 const struct natra_open_opts *opts);

/** @brief Free a handle; NULL is allowed. Attachments stay. */
NATRA_API void natra_close(struct natra *n);

/**
 * @brief Report what the kernel can do, and which mode `auto` would take.
 *
 * Leaves nothing behind: natra queries the hooks, and tries fq in a network
 * namespace of its own, for which it needs CAP_SYS_ADMIN.
 *
 * @param ret_features  `sz` set by the caller.
 * @return 0; -EINVAL; -EPERM; -ENOMEM; others as the kernel returned them.
 */
NATRA_API int natra_probe(struct natra *n, struct natra_features *ret_features);

/**
 * @brief Check whether attaching to an interface in another network namespace
 *        can work here; cheap enough to be called every few seconds.
 *
 * Looks at the privileges of the process and the place of bpffs, creates one small map, and has
 * the verifier look at a few instructions that natra needs. Loads no program, enters no
 * namespace and mounts nothing; natra_probe reports more.
 *
 * @return 0; -EOPNOTSUPP the kernel has no BPF or lacks what natra needs, which
 *         natra_error() names; -ENOENT, -ENOTDIR, -ENOTEMPTY there is no place for bpffs;
 *         -EPERM; -ENOMEM; others as the kernel returned them.
 */
NATRA_API int natra_status(struct natra *n);

/**
 * @brief Check a policy without touching the kernel.
 * @return 0; -EINVAL, and natra_error() names the field and the value; -ENOMEM.
 */
NATRA_API int natra_policy_check(struct natra *n,
				 const struct natra_policy *policy);

/**
 * @brief Put what a pod asks for by its annotations into a policy.
 *
 * These are natra's ("natra.io/fast-pass"; natra-cni(8) has a table of them), those of
 * Calico's that mean the same ("qos.projectcalico.org/ingressPacketRate",
 * ".../ingressBandwidth"), Kubernetes' rates ("kubernetes.io/ingress-bandwidth", and for
 * egress), and "natra.io/classes": classes as natra_parse_class reads them, separated by
 * semicolons, which replace those of the policy. All that a pod has belong into one call:
 * their order does not matter, natra's name counts before Calico's, and a burst may need the
 * rate of another one. A rate is from 1k (1000 bit/s) to 1P. Annotations of others are not looked
 * at.
 *
 * Once the rates are read, limits of packets and connections, and bursts, that the policy
 * has in a direction without a rate are left out, and what it is in a group if it is in
 * none: so a caller's policy may have values for whatever rates pods ask for.
 *
 * An annotation that neither `allowed` nor allow_all covers is ignored, also if its value is
 * bad, and logged as NATRA_LOG_WARN. Kubernetes' rates are ignored without that line, because the
 * runtime reads them as well: a caller that wants them from here allows them.
 *
 * @param policy       `sz` set by the caller; changed on success only. It is for
 *                     natra_policy_check or natra_attach to judge it as a whole.
 * @param ret_classes  NULL if no annotation asks for classes, or else what
 *                     policy->classes points to: one piece of memory, which the caller
 *                     frees with free() when the policy is not needed any more.
 * @return 0; -EINVAL bad value, and natra_error() names the annotation and the value, or
 *         an allowed one that natra does not know, or, also with skip_bad, a number of `policy`
 *         that is out of range, or a list of subnets that is bad; -ENOMEM.
 */
NATRA_API int natra_policy_annotate(struct natra *n,
				    struct natra_policy *policy,
				    const struct natra_annotations *annotations,
				    struct natra_class **ret_classes);

/**
 * @brief Shape an interface: create the attachment of `target`, or replace it.
 *
 * If it fails, the interface and the state are as before, save that an automatic group which
 * was there keeps the limits that it was given. An id stays with its interface: as long as
 * that exists, also in another netns, the id cannot be attached to another one (-EBADE).
 * A repeated call succeeds and keeps counters, unless what natra_configure cannot change is
 * another than before, another build with another layout of the maps made the attachment, or
 * another owner's program has come in front on the host side: then they begin again, see
 * natra_upgrade, and natra is in front again. Other owners'
 * programs on the same hooks still run, after natra's. The library logs a warning if a
 * program runs before natra's nevertheless (see natra_neighbour), and if limits of the
 * bandwidth plugin apply as well (see natra_find_leftovers).
 *
 * An automatic group may have no place: 32 of NATRA_GROUPS_MAX are left for natra_group_set,
 * and attachments with labels "<namespace>/<pod>" of one namespace are in 16 at most. Then
 * the attachment is in none, and has the group's rates where they are lower than its own,
 * which a warning in the log says. An automatic group whose floor its parent has no room
 * for has none, and a warning says so, too. natra_configure does the same.
 *
 * Mode AUTO tries, with EDT AUTO or ON: TCX podside, clsact podside, TCX hostside, clsact
 * hostside; with EDT OFF: TCX podside, TCX hostside, clsact podside, clsact hostside; and goes
 * to the next only if this kernel or interface cannot do the one before. EDT AUTO leaves
 * departure times out if the kernel has no fq, or if the interface has a qdisc that fq must not
 * replace; natra_info says why.
 *
 * @param ret_info  what was attached and why, as natra_query reports it; NULL:
 *                  not wanted. `sz` set by the caller.
 * @return 0; -EINVAL bad field; -ENODEV no such interface; -ENOENT no such netns or group;
 *         -ERANGE the floors of the group's members are more than its rate; -ELOOP the parent
 *         of an automatic group has a parent; -ECANCELED; -EOPNOTSUPP this kernel or interface
 *         cannot, or the interface's packets begin with neither an Ethernet header nor IP (as
 *         of InfiniBand); -EBUSY EDT is ON and another qdisc is installed, or mq is there for
 *         several transmit queues, or, with NATRA_INGRESS_MODE_PACE, either is so on the
 *         host-side veth, or the interface belongs to another id, or another process
 *         had one of natra's locks for 5 s; -ESTALE something else is pinned in the place of the
 *         groups; -EBADE the id has limits on another interface, see
 *         NATRA_CODE_OTHER_INTERFACE; -ENOTEMPTY see above; -EPERM; -ENOMEM; others as the
 *         kernel returned them.
 */
NATRA_API int natra_attach(struct natra *n, const struct natra_target *target,
			   const struct natra_policy *policy,
			   struct natra_info *ret_info);

/**
 * @brief Load the programs that an attachment with this policy needs, for those that come
 *        later; no attachment stays.
 *
 * The interface is one of the caller's own, to which natra_attach and natra_detach attach for a
 * moment. No group is needed, made or entered, whichever the policy names. The
 * handle must have keep_programs: without it the programs go again with that detach, and the
 * call, which succeeds all the same, was in vain.
 *
 * @return as natra_attach.
 */
NATRA_API int natra_preload(struct natra *n, const struct natra_target *target,
			    const struct natra_policy *policy,
			    struct natra_info *ret_info);

/**
 * @brief Change the limits of an attachment, atomically for each packet.
 *
 * Packets sent before the change were charged at the old rate. That debt delays later packets
 * by no more than horizon_ns (egress with departure times), pace_limit_ns (ingress that is
 * paced) or 100 ms (where nothing is paced), so a higher rate takes effect at once; that of
 * a class does when no class owes any more.
 *
 * The policy is all that holds afterwards, but for what is fixed or a list: a member that
 * is 0 is the default again, and a direction without a rate is not limited any more, save
 * by a group or class. It stays attached, also if no limit is left, and counts its packets
 * as `unlimited`. To change one limit, change what natra_query reports.
 *
 * attach_mode, edt_pacing, ingress_mode and sli of `policy` must be 0 or as they were asked
 * for. A direction that had no limit so far gets its programs now, and the counters of both begin
 * again, as they do if the attachment joins a first group or leaves for none.
 *
 * The list of subnets is kept if `policy` has none, and so are the classes if `classes` is
 * NULL; any other pointer with `classes_len` 0 takes them away. Those of `policy` may have
 * other rates and DSCPs: counters go on, and each packet is judged by the old lists or by
 * the new ones. If the number of classes, their names or their order are others, or a list of
 * subnets takes the place of one of the other kind or of none, the interface is attached again,
 * and the counters begin again. Lists that a killed process has half changed stay so, and
 * natra_check says it (-EUCLEAN), until a policy has them all; so does this function if they are
 * too many together.
 *
 * @return 0; -EINVAL bad field; -ENOENT not attached; -ENODEV the interface is gone;
 *         -EOPNOTSUPP it is `unshaped`; -ESTALE it is of another ABI; others, also for its
 *         group, as natra_attach.
 */
NATRA_API int natra_configure(struct natra *n, const char *id,
			      const struct natra_policy *policy);

/**
 * @brief Make an attachment of another build of natra run this library's programs.
 *
 * Where the two builds agree on the layout of the maps, the program is changed in place:
 * counters, buckets and known flows stay, no packet is lost or passes unlimited meanwhile, and
 * the attachments that share the program follow. Otherwise the interface is attached again with
 * the policy on record, as natra_attach does it, and the counters begin again. The limits are
 * derived anew from the policy on record. Succeeds if there is nothing to change.
 *
 * Calling natra_attach again with the same arguments does the same.
 *
 * @return 0; -EINVAL; -ENOENT not attached; -ENODEV the interface is gone; -EOPNOTSUPP it is
 *         `unshaped`; -ESTALE it is of another ABI, so that its policy cannot be read:
 *         natra_attach replaces it; others as natra_attach.
 */
NATRA_API int natra_upgrade(struct natra *n, const char *id);

/**
 * @brief Remove an attachment with all that natra put there.
 *
 * Succeeds when there is nothing, when the interface or netns is gone, and
 * when called twice. `target` needs `id`, or `ifname` (and netns) if the id
 * was the default. A qdisc, clsact or program of others is left, and natra's clsact on the host
 * side, which others may use by now.
 *
 * @return 1 removed; 0 there was nothing; -EINVAL; -EBUSY `ifname` alone, and the interface
 *         has another id (natra_find tells it), or a lock, or a netns that is hidden from this
 *         process has the attachment's filters (clsact): all of it stays; -ECANCELED; -EPERM;
 *         -ENOMEM; others as the kernel returned them.
 */
NATRA_API int natra_detach(struct natra *n, const struct natra_target *target);

/**
 * @brief Compare the kernel's state with what was last set, and that with a policy.
 * @param policy  NULL, or one to compare with. A 0 in it is the default, and in what is fixed at
 *                attach it is what there is. A policy without subnets differs from an attachment
 *                that has some, and so with classes; lengths without lists, as natra_query
 *                reports them, stand for those that there are. The limits of its group are not
 *                compared.
 * @return 0 all is there; -EINVAL; -ENOENT not attached; -ENODEV the interface is gone; -EBADE
 *         something differs, an earlier change has left something besides, which natra_gc removes,
 *         it is `unshaped`, or without a policy, packets pass natra's programs (NATRA_CODE_BYPASSED):
 *         natra_error() names the setting or the class with both values, or what is missing,
 *         natra_error_code() tells these apart, and natra_error_about() names the setting or the
 *         class; a difference from `policy` comes first; -EUCLEAN a change of classes or subnets
 *         ended half-way: set them again; -EBUSY; -ECANCELED; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_check(struct natra *n, const char *id,
			  const struct natra_policy *policy);

/**
 * @brief Report one attachment.
 * @param ret_info  `sz` set by the caller.
 * @return 0, also for what natra of another ABI has attached (`other_abi`); -EINVAL; -ENOENT;
 *         -EPERM; -ENOMEM; others as the kernel returned them.
 */
NATRA_API int natra_query(struct natra *n, const char *id,
			  struct natra_info *ret_info);

/**
 * @brief Walk the subnets of an attachment, shaped or unshaped.
 *
 * The lengths in `policy` of natra_query say which of the two lists is set.
 *
 * @param fn  `cidr` is canonical ("10.1.2.3/8" comes as "10.0.0.0/8"), and
 *            the subnets come in ascending order, IPv4 before IPv6.
 * @return 0; what fn returned; -EINVAL; -ENOENT not attached; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_foreach_subnet(struct natra *n, const char *id,
				   natra_subnet_fn fn, void *arg);

/**
 * @brief Walk the classes of an attachment, in the order in which they were given.
 *
 * @param fn  the subnets of a class are canonical and in ascending order, as by
 *            natra_foreach_subnet, which walks no subnets of classes.
 * @return 0; what fn returned; -EINVAL; -ENOENT not attached; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_foreach_class(struct natra *n, const char *id,
				  natra_class_fn fn, void *arg);

/**
 * @brief Find the id of the attachment on an interface.
 * @param target  `ifname` and its netns; `id` is not read.
 * @param ret_id  `size` bytes; NATRA_ID_MAX + 1 have room for each id.
 * @return 0; -EINVAL; -ERANGE it does not fit; -ENOENT nothing attached (natra_error_code() is
 *         NATRA_CODE_NOT_ATTACHED), or no such netns; -ENODEV; -EPERM; -ENOMEM; others as the
 *         kernel returned them.
 */
NATRA_API int natra_find(struct natra *n, const struct natra_target *target,
			 char *ret_id, size_t size);

/**
 * @brief Read the counters, summed over CPUs.
 *
 * They grow, and begin again where natra_attach, natra_configure and natra_upgrade say so:
 * `pin_path` of natra_info is another one then. The numbers of heavy flows and
 * `over_limit_percent` also fall.
 *
 * @param ret_stats  `sz` set by the caller.
 * @return 0; -EINVAL; -ENOENT; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_stats(struct natra *n, const char *id,
			  struct natra_stats *ret_stats);

/**
 * @brief Read the counters of the class `name`, as natra_stats reads those of the packets
 *        that are in no class: each packet counts in one of them.
 * @return 0; -EINVAL; -ENOENT not attached, or no such class; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_class_stats(struct natra *n, const char *id,
				const char *name,
				struct natra_stats *ret_stats);

/**
 * @brief Walk the counters of all classes, for less than natra_class_stats for each. `fn`
 *        gets the name and the rates of a class; natra_foreach_class has its lists.
 * @return 0; what fn returned; -EINVAL; -ENOENT not attached; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_foreach_class_stats(struct natra *n, const char *id,
					natra_class_stats_fn fn, void *arg);

/**
 * @brief Walk all attachments with their counters, in no particular order.
 *
 * This is much cheaper than natra_foreach_attachment and natra_stats for each: it
 * looks for no interface, opens what attachments share once, and copies only what
 * it sums. What cannot be read is logged: an attachment of which that is the record is left
 * out, and one of which it is the counters has none.
 *
 * @return 0; what fn returned; -EINVAL; -EPERM; -ENOMEM.
 */
NATRA_API int natra_foreach_stats(struct natra *n, natra_stats_fn fn,
				  void *arg);

/**
 * @brief Read the heavy flows of one direction, sorted by bytes, descending.
 *
 * The table has 32 entries, in 8 sets of 4, and a flow's hash says which set it is
 * in. A set keeps its largest flows by what they sent in the last seconds; a flow
 * gets another's entry once it is larger by half, and counts from then on. When
 * two CPUs count the same flow at the same moment, one of them is not counted.
 * Each class of peers has such a table; the flows of all are read.
 *
 * @param ret_flows  room for *inout_len flows, owned by the caller: NATRA_FLOWS_MAX for all.
 * @param inout_len  in: room; out: how many were written.
 * @return 0; -EINVAL; -ENOENT; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_top(struct natra *n, const char *id,
			enum natra_direction direction,
			struct natra_flow *ret_flows, size_t *inout_len);

/** Opaque reader of events. */
struct natra_events;

/**
 * @brief Begin to read the events that the programs of this node report: see
 *        natra_event_reason.
 *
 * They write into one ring, which keeps the newest 1024 events of all attachments, whether or
 * not anybody reads. Reading takes nothing out of it, so there can be any number of readers,
 * and each begins with the oldest event that is kept. The events per second of each attachment
 * are bounded, so that it cannot overwrite those of others before they are read.
 *
 * @param ret_events  the reader; free it with natra_events_close, before `n`, whose error
 *                    natra_events_read sets. One thread at a time may use it or `n`, and
 *                    after fork(2) only one of the two processes.
 * @return 0; -EINVAL; -ENOENT no program that reports events is loaded; -ESTALE
 *         something else is pinned in the place of the ring; -EPERM; -ENOMEM;
 *         others as the kernel returned them.
 */
NATRA_API int natra_events_open(struct natra *n,
				struct natra_events **ret_events);

/**
 * @brief Read the next event without waiting.
 *
 * When all programs were removed and others are loaded, there is a new ring: a reader
 * that has read all of the old one goes on with the new one.
 *
 * @param ret_event  `sz` set by the caller. Untouched unless 1 is returned.
 * @return 1; 0 there is none at present; -EINVAL; -ESTALE something else is pinned in the place
 *         of the ring or of the groups; -EPERM; -ENOMEM; others as the kernel returned them. If
 *         what belongs to an event cannot be read, the next one counts it in `lost`.
 */
NATRA_API int natra_events_read(struct natra_events *events,
				struct natra_event *ret_event);

/**
 * @brief Get a descriptor for poll(2), select(2) or epoll(7), owned by the reader.
 *
 * It becomes readable 10 times per second, whether or not there are events, so that
 * programs need not wake readers up. Call natra_events_read until it returns 0, which
 * also makes the descriptor wait for its next turn.
 *
 * @return the descriptor, which natra_events_close closes; -EINVAL.
 */
NATRA_API int natra_events_fd(const struct natra_events *events);

/** @brief Free a reader; NULL is allowed. The events stay. */
NATRA_API void natra_events_close(struct natra_events *events);

/**
 * @brief Walk the programs on the hooks of an attachment, in the order they run: of filters
 *        (clsact) the first 128 of a hook, and the attachment's own. If the pod's side cannot
 *        be looked at, those of the host side come, and then the error.
 * @return 0; what fn returned; -EINVAL; -ENOENT; -ENODEV; -EPERM; -ENOMEM; others as the kernel
 *         returned them.
 */
NATRA_API int natra_foreach_neighbour(struct natra *n, const char *id,
				      natra_neighbour_fn fn, void *arg);

/**
 * @brief Record that an interface runs without the limits it should have.
 *
 * For callers that go on when natra_attach failed. natra_query and
 * natra_foreach_attachment report it (`unshaped`, `reason`); its counters are 0;
 * natra_check returns -EBADE and names the reason, natra_configure -EOPNOTSUPP;
 * natra_attach replaces it, but refuses (-EBADE) another interface of the same netns while
 * this one exists; natra_detach and natra_gc remove it.
 *
 * If the id has limits on this interface already, these still hold: they stay, nothing
 * is recorded, and the call succeeds. If it has limits on another one, see natra_attach.
 *
 * @param policy  what it should have, as far as that is known: it needs no rate. Else
 *                checked as by natra_attach.
 * @param reason  one line, cut after 255 bytes; natra_error(n) is allowed.
 * @return 0; -EINVAL bad field; -ENODEV no such interface; -ENOENT no such netns; -EBUSY,
 *         -EBADE as natra_attach; -ECANCELED; -EPERM; -ENOMEM; others as the kernel returned
 *         them.
 */
NATRA_API int natra_record_unshaped(struct natra *n,
				    const struct natra_target *target,
				    const struct natra_policy *policy,
				    const char *reason);

/**
 * @brief Walk all attachments, in the order of their ids. If the record of one of them cannot be
 *        read, the walk fails before it calls `fn`.
 * @param fn  what natra_detach returns is no result of fn: 1 would end the walk.
 * @return 0; what fn returned; -EINVAL; -EPERM; -ENOMEM.
 */
NATRA_API int natra_foreach_attachment(struct natra *n, natra_attachment_fn fn,
				       void *arg);

/**
 * @brief Remove stale attachments.
 *
 * These are attachments whose interface is gone, and the leftovers of killed
 * processes. If `network` is not NULL, natra also removes every attachment of
 * that network whose id is not in `keep`, and none whose id is; "" stands for all that were
 * attached without a network. What stays gets the limits back that a killed
 * process has lifted or half changed.
 *
 * It needs CAP_SYS_PTRACE where a network namespace has no file in /run/netns
 * and only processes with more capabilities than this one hold it. Without that
 * privilege, or in a pid namespace of its own, it does not see such a namespace. An attachment by
 * filters (clsact) in it stays: if it is of a veth or netkit, whose other end shows that it is there,
 * without an error unless `keep` lacks it, and else -EBUSY says so.
 *
 * @param keep         ids, which need a network; NULL if keep_len is 0.
 * @param ret_removed  how many; may be NULL.
 * @return 0; the first error, after trying them all; -EINVAL; -EBUSY; -EPERM; -ENOMEM.
 */
NATRA_API int natra_gc(struct natra *n, const char *network,
		       const char *const *keep, size_t keep_len,
		       size_t *ret_removed);

/**
 * @brief Make a group, or change its limits, atomically for each packet.
 *
 * A group stays until natra_group_remove, also without members, or until the machine
 * is started again. Members stay when limits change. A later change of the limits
 * takes effect at once. An automatic group of the same name is another one, which
 * attachments alone make, change and remove (see natra_policy).
 *
 * @param group  what it shall be; the members behind `room` are ignored, but those that this
 *               library does not know have to be 0, as in all structs.
 * @return 0; -EINVAL bad field; -ENOENT no such parent; -ENOSPC there are
 *         NATRA_GROUPS_MAX others; -ERANGE the floors of its members, or those of the
 *         groups in its parent, are more than the rate; -ELOOP a parent with a
 *         parent; -EBUSY a lock; -ESTALE something else is pinned in the place of the groups;
 *         -EPERM; -ENOMEM; others as the kernel returned them.
 */
NATRA_API int natra_group_set(struct natra *n,
			      const struct natra_group_info *group);

/**
 * @brief Remove a group that natra_group_set has made. Succeeds when there is none of
 *        this name.
 * @return 1 removed; 0 there was none; -EINVAL; -EBUSY it has members, or may have one whose
 *         record cannot be read, or is a parent, which natra_error() says; -ESTALE; -EPERM;
 *         -ENOMEM.
 */
NATRA_API int natra_group_remove(struct natra *n, const char *name);

/**
 * @brief Walk all groups, those that are automatic as well.
 * @return 0; what fn returned; -EINVAL; -EBUSY a lock; -ESTALE; -EPERM; -ENOMEM.
 */
NATRA_API int natra_foreach_group(struct natra *n, natra_group_fn fn,
				  void *arg);

/** @brief Version of the library, such as "0.1.0". Static. */
NATRA_API const char *natra_version(void);

#ifdef __cplusplus
}
#endif

#endif
