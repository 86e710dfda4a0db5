/**
 * The command line of QEMU for one guest: a PC of the q35 kind, its memory in a memfd that a device server can map, and per
 * adapter a PCIe root port with a vfio-user device. Processors are emulated (TCG), so it runs anywhere; KVM would be faster,
 * but on many virtual machines it boots no stock kernel.
 */

import { join } from 'node:path';
import { adapterArguments } from '../serve/index.ts';
import { consoleDevice } from './image/init-scripts.ts';
import { peerNetworkAddresses } from './peer-network.ts';
import { type CommandLine, treeProgram } from './tree-program.ts';

/** Virtual Ethernet between guests: each QEMU's end of a UNIX socket. */
interface GuestNetwork {
  readonly socket: string;
  readonly isServer: boolean;
}

/**
 * Virtual Ethernet of a guest whose peer is a simulated host. It connects only to that: the rendezvous port of stock programs,
 * in both directions, over this computer's loopback.
 */
export interface PeerNetwork {
  /** The rendezvous port, in the guest and of its peer. */
  readonly meetingPort: number;
  /** Ports of the loopback: one that QEMU opens for connections of the peer's program, and one that receives the guest's connections. */
  readonly toGuestPort: number;
  readonly fromGuestPort: number;
  /** Busybox of this computer: it carries each connection of the guest. */
  readonly busybox: string;
}

export interface QemuOptions {
  /** Folder of the unpacked QEMU packages. */
  readonly qemuRoot: string;
  /** Kernel image and initial file system. */
  readonly kernel: string;
  readonly initramfs: string;
  /** The guest's host name. */
  readonly name: string;
  readonly memoryMib: number;
  readonly cpus: number;
  /** QEMU's model of its processors; left out: QEMU's own choice. */
  readonly cpuModel?: string | undefined;
  /** Sockets at which adapters are served. */
  readonly adapters: readonly string[];
  /** Socket that QEMU opens as the guest's second serial port. */
  readonly agentSocket: string;
  readonly network: GuestNetwork | PeerNetwork | undefined;
  /** Socket of the other end of an adapter's cable: connects a network card of this guest. */
  readonly wire?: string | undefined;
  /** Additions to the kernel's command line. */
  readonly kernelParameters: readonly string[];
}

/** The command line. The first serial port is QEMU's standard input and output. */
export function qemuCommandLine(options: QemuOptions): CommandLine {
  const { qemuRoot } = options;
  const { file, arguments: loading } = treeProgram(qemuRoot, 'usr/bin/qemu-system-x86_64');
  const firmware = ['usr/share/qemu', 'usr/share/seabios', 'usr/lib/ipxe/qemu'];
  return {
    file,
    arguments: [
      ...loading,
      ...firmware.flatMap((folder) => ['-L', join(qemuRoot, folder)]),
      ...['-run-with', 'exit-with-parent=on'],
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-monitor', 'none'],
      ...['-accel', 'tcg,thread=multi', '-smp', String(options.cpus)],
      ...(options.cpuModel === undefined ? [] : ['-cpu', options.cpuModel]),
      ...['-machine', 'q35,memory-backend=memory', '-m', `${options.memoryMib}M`],
      ...['-object', `memory-backend-memfd,id=memory,size=${options.memoryMib}M,share=on`],
      // Ctrl-C belongs to the guest's shell, not to QEMU.
      ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
      ...[
        '-chardev',
        `socket,id=agent,path=${options.agentSocket},server=on,wait=off`,
        '-serial',
        'chardev:agent',
      ],
      ...networkArguments(options.network),
      ...wireArguments(options.wire),
      ...options.adapters.flatMap(adapterArguments),
      ...['-kernel', options.kernel, '-initrd', options.initramfs, '-append', kernelCommandLine(options)],
    ],
  };
}

function networkArguments(network: QemuOptions['network']): string[] {
  if (network === undefined) return [];
  if ('meetingPort' in network) return peerNetworkArguments(network);
  const { socket, isServer } = network;
  const end = `stream,id=net,server=${isServer ? 'on' : 'off'},addr.type=unix,addr.path=${socket}${isServer ? '' : ',reconnect-ms=200'}`;
  const address = `52:54:00:00:00:0${isServer ? 1 : 2}`;
  return ['-netdev', end, '-device', `virtio-net-pci,netdev=net,mac=${address}`];
}

function wireArguments(wire: string | undefined): string[] {
  if (wire === undefined) return [];
  const end = `stream,id=wire,server=off,addr.type=unix,addr.path=${wire},reconnect-ms=200`;
  return ['-netdev', end, '-device', 'virtio-net-pci,netdev=wire,mac=52:54:00:00:00:04'];
}

function peerNetworkArguments({ meetingPort, toGuestPort, fromGuestPort, busybox }: PeerNetwork): string[] {
  // QEMU reads two commas as one, and splits the words like a shell.
  const program = `'${busybox.replaceAll("'", "'\\''")}'`.replaceAll(',', ',,');
  const end = [
    'user,id=net,restrict=on',
    `hostfwd=tcp:127.0.0.1:${toGuestPort}-${peerNetworkAddresses.guest}:${meetingPort}`,
    `guestfwd=tcp:${peerNetworkAddresses.peer}:${meetingPort}-cmd:${program} nc 127.0.0.1 ${fromGuestPort}`,
  ].join(',');
  return ['-netdev', end, '-device', 'virtio-net-pci,netdev=net,mac=52:54:00:00:00:03'];
}

/**
 * Time is read from the processor's counter, which emulated processors share: a device register would be slow, and perftest,
 * which compares the two clocks, refuses to report on a busy machine. Self-tests of ciphers are disabled: they take half a
 * second. So are mitigations of side channels, which an emulated processor does not have: a tenth of a boot. A guest that
 * panics restarts, which is noticed.
 */
function kernelCommandLine({ name, kernelParameters }: QemuOptions): string {
  return [
    `console=${consoleDevice}`,
    'quiet',
    'panic=-1',
    'no_timer_check',
    'tsc=reliable',
    'cryptomgr.notests',
    'mitigations=off',
    `hca.name=${name}`,
    ...kernelParameters,
  ].join(' ');
}
