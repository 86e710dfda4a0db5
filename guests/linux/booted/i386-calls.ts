/**
 * Names of the system calls of a Linux of 32 bits, and what those of the verbs interface are asked for.
 * Source: Linux, arch/x86/entry/syscalls/syscall_32.tbl, and the headers of include/uapi/rdma: ib_user_verbs.h, ib_user_ioctl_cmds.h and
 * rdma_user_ioctl_cmds.h (commands, objects, and the layout of a request).
 */
import type { KernelConventions, SystemCall } from '../../pc/index.ts';

/** By number; - where none is. */
const callNames = `
restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time mknod chmod
lchown break oldstat lseek getpid mount umount setuid getuid stime ptrace alarm oldfstat pause utime
stty gtty access nice ftime sync kill rename mkdir rmdir dup pipe times prof brk setgid getgid signal
geteuid getegid acct umount2 lock ioctl fcntl mpx setpgid ulimit oldolduname umask chroot ustat dup2
getppid getpgrp setsid sigaction sgetmask ssetmask setreuid setregid sigsuspend sigpending sethostname
setrlimit getrlimit getrusage gettimeofday settimeofday getgroups setgroups select symlink oldlstat
readlink uselib swapon reboot readdir mmap munmap truncate ftruncate fchmod fchown getpriority
setpriority profil statfs fstatfs ioperm socketcall syslog setitimer getitimer stat lstat fstat olduname
iopl vhangup idle vm86old wait4 swapoff sysinfo ipc fsync sigreturn clone setdomainname uname modify_ldt
adjtimex mprotect sigprocmask create_module init_module delete_module get_kernel_syms quotactl getpgid
fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents _newselect flock msync
readv writev getsid fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam sched_getparam
sched_setscheduler sched_getscheduler sched_yield sched_get_priority_max sched_get_priority_min
sched_rr_get_interval nanosleep mremap setresuid getresuid vm86 query_module poll nfsservctl setresgid
getresgid prctl rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo
rt_sigsuspend pread64 pwrite64 chown getcwd capget capset sigaltstack sendfile getpmsg putpmsg vfork
ugetrlimit mmap2 truncate64 ftruncate64 stat64 lstat64 fstat64 lchown32 getuid32 getgid32 geteuid32
getegid32 setreuid32 setregid32 getgroups32 setgroups32 fchown32 setresuid32 getresuid32 setresgid32
getresgid32 chown32 setuid32 setgid32 setfsuid32 setfsgid32 pivot_root mincore madvise getdents64
fcntl64 - - gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr
llistxattr flistxattr removexattr lremovexattr fremovexattr tkill sendfile64 futex sched_setaffinity
sched_getaffinity set_thread_area get_thread_area io_setup io_destroy io_getevents io_submit io_cancel
fadvise64 - exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait remap_file_pages set_tid_address
timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime
clock_getres clock_nanosleep statfs64 fstatfs64 tgkill utimes fadvise64_64 vserver mbind get_mempolicy
set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid -
add_key request_key keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch
migrate_pages openat mkdirat mknodat fchownat futimesat fstatat64 unlinkat renameat linkat symlinkat
readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice
sync_file_range tee vmsplice move_pages getcpu epoll_pwait utimensat signalfd timerfd_create eventfd
fallocate timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1
preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64
name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv
process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create
bpf execveat socket socketpair bind connect listen accept4 getsockopt setsockopt getsockname getpeername
sendto sendmsg recvfrom recvmsg shutdown userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2
pkey_mprotect pkey_alloc pkey_free statx arch_prctl io_pgetevents rseq - - - - - - semget semctl shmget
shmctl shmat shmdt msgget msgsnd msgrcv msgctl clock_gettime64 clock_settime64 clock_adjtime64
clock_getres_time64 clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64
timerfd_settime64 utimensat_time64 pselect6_time64 ppoll_time64 - io_pgetevents_time64 recvmmsg_time64
mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 futex_time64
sched_rr_get_interval_time64 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree
move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule
landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node`
  .trim()
  .split(/\s+/);

/** Commands of the verbs interface by number. */
const verbsCommands =
  'get_context query_device query_port alloc_pd dealloc_pd create_ah modify_ah query_ah destroy_ah reg_mr reg_smr rereg_mr query_mr ' +
  'dereg_mr alloc_mw bind_mw dealloc_mw create_comp_channel create_cq resize_cq destroy_cq poll_cq peek_cq req_notify_cq create_qp ' +
  'query_qp modify_qp destroy_qp post_send post_recv attach_mcast detach_mcast create_srq modify_srq query_srq destroy_srq ' +
  'post_srq_recv open_xrcd close_xrcd create_xsrq open_qp';
const commandNames = verbsCommands.split(' ');
/** Objects of the verbs interface by number. */
const objectNames =
  'device pd comp_channel cq qp srq ah mr mw flow xrcd rwq_ind_tbl wq flow_action dm counters async_event'.split(
    ' ',
  );

const ioctlNumber = 54;
/** RDMA_VERBS_IOCTL: _IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr). */
const verbsRequest = 0xc018_1b01;
/** struct ib_uverbs_ioctl_hdr, and the struct ib_uverbs_attr after it. */
const header = { bytes: 24, object: 2, method: 4, attributeCount: 6 } as const;
const attribute = { bytes: 16, id: 0, length: 2, data: 8 } as const;
/** Attributes of UVERBS_METHOD_INVOKE_WRITE: the former command's parameters, and its number. */
const coreInputId = 0;
const writeCommandId = 2;
const [deviceObject, mrObject] = [0, 7];
const mrDestroyMethod = 1;
/** Offset of the length in struct ib_uverbs_reg_mr. */
const regionLengthOffset = 16;
const attributesMax = 16;
/** IB_USER_VERBS_CMD_FLAG_EXTENDED, and the command beside it. */
const extendedCommand = 0x8000_0000;
const commandMask = 0xff;

/**
 * Linux on i386: INT 0x80 (arch/x86/include/asm/irq_vectors.h), a direct map after 3 GiB of user space and stacks of 8 KiB
 * (page_32_types.h).
 */
export const i386Linux: KernelConventions = {
  callVector: 0x80,
  directMapAddress: 0xc000_0000,
  stackBytes: 8192,
  // A struct fork_frame (include/asm/switch_to.h) of 92 bytes below 8 or 16 of padding.
  freshStackBytes: 128,
  nameOf: (call) => {
    const name = callNames[call.number] ?? `call ${call.number}`;
    const verb = call.number === ioctlNumber ? verbOf(call) : undefined;
    return verb === undefined ? name : `${name} ${verb}`;
  },
};

/** The verb that an ioctl requests, a registration with its bytes; undefined for other requests. */
function verbOf({ parameters: [, request, address], bytesAt }: SystemCall): string | undefined {
  if (request !== verbsRequest) return undefined;
  const head = viewOf(bytesAt(address, header.bytes));
  if (head === undefined) return undefined;
  const [object, method] = [head.getUint16(header.object, true), head.getUint16(header.method, true)];
  if (object === mrObject && method === mrDestroyMethod) return 'dereg_mr';
  const count = Math.min(attributesMax, head.getUint16(header.attributeCount, true));
  const attributes = viewOf(bytesAt(address + header.bytes, count * attribute.bytes));
  if (object !== deviceObject || method !== 0 || attributes === undefined)
    return `${objectNames[object] ?? object} method ${method}`;
  const dataOf = (id: number): number | undefined => {
    for (let at = 0; at < attributes.byteLength; at += attribute.bytes)
      if (attributes.getUint16(at + attribute.id, true) === id)
        return attributes.getUint32(at + attribute.data, true);
    return undefined;
  };
  const command = dataOf(writeCommandId);
  const isExtended = ((command ?? 0) & extendedCommand) !== 0;
  const name = `${isExtended ? 'ex_' : ''}${commandNames[(command ?? -1) & commandMask] ?? command}`;
  const input = dataOf(coreInputId);
  if (name !== regMr || input === undefined) return name;
  const length = viewOf(bytesAt(input + regionLengthOffset, 8))?.getBigUint64(0, true);
  return length === undefined ? name : `${name} ${length} bytes`;
}

const regMr = 'reg_mr';

const viewOf = (bytes: Uint8Array | undefined): DataView | undefined =>
  bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Bytes of the region that a system call of this name registers; undefined for others. */
export function registeredBytes(name: string | undefined): number | undefined {
  const [, bytes] = /^ioctl reg_mr (\d+) bytes$/.exec(name ?? '') ?? [];
  return bytes === undefined ? undefined : Number(bytes);
}
