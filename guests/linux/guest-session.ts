/**
 * One or two Linux guests with one or two HCAs served to them, from power-on to the report.
 *
 *     serve() ── sockets ──► QEMU guest0 (── QEMU guest1) ── agent ──► commands
 *        └────────── report ──► /proc/interrupts of each guest next to what its device counted
 *
 * An HCA whose port has no cable has a loopback plug, so that programs of one guest can talk over it. Two guests share a
 * virtual Ethernet, over which tests find each other: guest0 and guest1 by name.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigurationError } from '../../base/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import {
  type PeerOptions,
  type PeerState,
  type ServedMachine,
  type ServeOptions,
  type ServeReport,
  serve,
  servedProfile,
} from '../serve/index.ts';
import { nativeLibrary } from '../slot/index.ts';
import type { CommandLimits, CommandResult } from './agent-line.ts';
import { figuresOf, type GuestFigures } from './budget.ts';
import { freePort } from './free-port.ts';
import { type GuestChoice, guestOptionsOf } from './guest-options.ts';
import { meetingPort, shellCommand } from './image/init-scripts.ts';
import { moduleNameOf } from './image/own-files.ts';
import { comparedWithDevice, type VectorComparison } from './interrupts.ts';
import { type GuestFiles, guestFiles } from './kernel-choice.ts';
import { LinuxGuest, type LinuxGuestOptions } from './linux-guest.ts';
import { ethernetLoadCommand, listModules, loadCommand, strangerLoadCommand } from './load-commands.ts';
import { addedModules, withOwnFiles } from './own-image.ts';
import { type CacheOptions, packagesOfKit } from './packages/cache.ts';
import { peerIpCommand, peerNameCommand, peerNet, peerNetworkCommand } from './peer-network.ts';
import type { PeerNetwork } from './qemu.ts';
import type { StagePeer } from './scenarios/index.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

export interface SessionOptions extends GuestChoice {
  readonly cache: CacheOptions;
  /** Further options of `serve`: profile, parameters, faults, traces. */
  readonly serve: Omit<ServeOptions, 'socket' | 'hcas' | 'cable' | 'wire' | 'once' | 'peer'>;
  /** A simulated host with a user's program at the other end of the guest's cable; left out: none. */
  readonly peer?: Omit<PeerOptions, 'guestPorts'>;
  readonly console: LinuxGuestOptions['console'];
  /** Called, in words, with events of serving. */
  readonly onNotice: (text: string) => void;
}

/** Versions of the programs that ran. */
export interface SessionVersions {
  readonly kernel: string;
  readonly qemu: string;
  readonly rdmaCore: string;
  readonly perftest: string;
}

export interface SessionResult {
  readonly versions: SessionVersions;
  /** Vectors of the drivers loaded at the end. */
  readonly interrupts: readonly VectorComparison[];
  readonly report: ServeReport;
}

/** Size of a terminal that reports none. */
const usualRows = 24;
const usualColumns = 80;

/** Time that the program of a simulated host may take to end after the last command. */
const peerPatienceMs = 10_000;
/** If it has failed, programs in the guest may wait for it indefinitely: they have this long to end by themselves. */
const failedPeerPatienceMs = 10_000;

const shellTimeoutSeconds = 7 * 24 * 3600;

/** Interrupts may be in flight while they are read: they agree if one of this many attempts finds them equal. */
const interruptAttempts = 5;
const interruptPauseMs = 200;

/** The adapter in a simulated host's slot. */
const adapterIn = ({ profile = servedProfile, set = {} }: SessionOptions['serve']): 'hca' | 'nic' =>
  configurationOf({ profile, set }).machine.adapter;

export class GuestSession implements AsyncDisposable {
  readonly #guests: LinuxGuest[];
  readonly #guestOptions: readonly LinuxGuestOptions[];
  /** Names of kernel modules that were added to the image. */
  readonly #ownModules: readonly string[];
  readonly versions: SessionVersions;
  readonly machine: ServedMachine;
  readonly #removeFolder: () => void;
  /** A guest's end is reported only if it was not requested. */
  readonly #listening: { isOn: boolean };
  readonly #hasPeer: boolean;
  /** The program of the simulated host; undefined without one. */
  readonly peer: StagePeer | undefined;
  readonly #hasStranger: boolean;
  #peerTimer: NodeJS.Timeout | undefined;

  private constructor(
    guests: LinuxGuest[],
    options: readonly LinuxGuestOptions[],
    ownModules: readonly string[],
    machine: ServedMachine,
    versions: SessionVersions,
    listening: { isOn: boolean },
    hasPeer: boolean,
    hasStranger: boolean,
    removeFolder: () => void,
  ) {
    this.#guests = guests;
    this.#guestOptions = options;
    this.#ownModules = ownModules;
    this.machine = machine;
    this.versions = versions;
    this.#removeFolder = removeFolder;
    this.#listening = listening;
    this.#hasPeer = hasPeer;
    this.peer = hasPeer ? peerOf(machine) : undefined;
    this.#hasStranger = hasStranger;
    void machine.peerEnded.then((state) => this.#peerHasEnded(state));
  }

  /**
   * Fetches what is missing, serves the HCAs and boots the guests; no driver is loaded yet.
   * @throws ConfigurationError for options and missing tools; GuestError if a guest does not start
   */
  static async start(options: SessionOptions): Promise<GuestSession> {
    const { peer, stranger } = options;
    if (stranger === undefined && options.guests > options.hcas)
      throw new ConfigurationError('guests', options.guests, 'at most as many as HCAs');
    if (stranger !== undefined && (options.guests !== 2 || peer !== undefined))
      throw new ConfigurationError('stranger', stranger, 'guest 1 of two, and no other peer');
    if (peer !== undefined && options.hcas > 1)
      throw new ConfigurationError('hcas', options.hcas, '1 beside a peer: the other HCA is its');
    // Before anything is fetched: guests cannot be served without it.
    nativeLibrary();
    const stockFiles = await guestFiles(options, options.cache);
    // QEMU ends with this process by itself; its sockets would remain.
    const { path: folder, remove: removeFolder } = makeTemporaryFolder('hca-guest-');
    const listening = { isOn: true };
    let machine: ServedMachine | undefined;
    try {
      const { hcas, cable, ownFiles } = options;
      const wire = stranger === undefined ? undefined : join(folder, 'wire');
      const hasRelay = peer !== undefined && adapterIn(options.serve) === 'hca';
      const toGuestPort = hasRelay ? await freePort() : 0;
      const files = withOwnFiles(stockFiles, ownFiles, options.memoryMib, folder);
      machine = await serve(
        {
          ...options.serve,
          ...{ socket: join(folder, 'hca'), hcas, cable },
          ...(wire === undefined ? {} : { wire }),
          ...(peer === undefined
            ? {}
            : { peer: { ...peer, ...(hasRelay ? { guestPorts: { [meetingPort]: toGuestPort } } : {}) } }),
        },
        { onNotice: (text) => listening.isOn && options.onNotice(text) },
      );
      const network: PeerNetwork | undefined =
        machine.peerPort === undefined
          ? undefined
          : {
              ...{ meetingPort, toGuestPort, fromGuestPort: machine.peerPort },
              busybox: join(files.toolsRoot, 'bin/busybox'),
            };
      const each = guestOptionsOf(options, files, machine.sockets, folder, [], network, wire);
      const guests = await startAll(each);
      const ownModules = addedModules(stockFiles, ownFiles).map(moduleNameOf);
      const versions = versionsOf(files);
      return new GuestSession(
        guests,
        each,
        ownModules,
        machine,
        versions,
        listening,
        peer !== undefined,
        stranger !== undefined,
        removeFolder,
      );
    } catch (error) {
      await machine?.close();
      removeFolder();
      throw error;
    }
  }

  get guests(): readonly LinuxGuest[] {
    return this.#guests;
  }

  get nowMs(): number {
    return performance.now();
  }

  /** Cuts a guest's power and boots another one on the same adapters. @throws GuestError */
  async replaceGuest(index: number): Promise<void> {
    await this.guest(index).dispose();
    this.#guests[index] = await LinuxGuest.start(this.#guestOptions[index]!);
  }

  /** The guest of that number. @throws ConfigurationError if none exists */
  guest(index: number): LinuxGuest {
    const guest = this.guests[index];
    if (guest === undefined) throw new ConfigurationError('guest', index, `0 to ${this.guests.length - 1}`);
    return guest;
  }

  /** Runs a command in a guest. @throws GuestError if the guest does not answer or has ended */
  run(guest: number, command: string, limits: CommandLimits): Promise<CommandResult> {
    return this.guest(guest).run(command, limits);
  }

  /** Each adapter has its own root port; its bus number follows the port's position. */
  adapterAddress(adapter: number): string {
    return `0000:${(adapter + 1).toString(16).padStart(2, '0')}:00.0`;
  }

  /** Counts of each HCA so far. */
  async figures(): Promise<GuestFigures[]> {
    return (await this.machine.report()).nodes.map(figuresOf);
  }

  /** Gives the user a shell on guest 0's console until the shell ends. @throws GuestError */
  async shell(): Promise<void> {
    process.stdout.write('The drivers are loaded. End the shell (exit, or Ctrl-D) to power the guest off.\n');
    const { rows = 0, columns = 0 } = process.stdout;
    await this.guest(0).run(shellCommand(rows || usualRows, columns || usualColumns), {
      timeoutSeconds: shellTimeoutSeconds,
    });
  }

  /** Loads the drivers in all guests, and joins two guests by their Ethernet. @throws GuestError */
  async load(): Promise<void> {
    const { hca, ethernet, machine } = (await this.machine.report()).config;
    const { capability, control } = hca;
    const isEthernet = capability.linkLayer === 'ethernet';
    const hasRoce = capability.roce !== 'none';
    const isManaged = control.embeddedSubnetManager;
    // A simulated host with a NIC is reached only over the cable.
    const hasNicPeer = this.#hasPeer && machine.adapter === 'nic';
    const network = this.#hasPeer ? peerNet : '10.2.$adapter';
    const joined = peerNetworkCommand(['virtio_pci', 'virtio_net']);
    const hcaPeerCommands = isEthernet ? [joined] : [joined, peerIpCommand];
    const peerCommands = hasNicPeer ? [peerNameCommand] : hcaPeerCommands;
    const joiningCommands = this.#hasPeer ? peerCommands : [];
    await Promise.all(
      this.guests.map(async (guest, index) => {
        if (this.guests.length > 1) await guest.check(networkCommand(index), 'joining the guests');
        for (const joining of joiningCommands) await guest.check(joining, 'joining the guest and its peer');
        if (this.#hasStranger && index === 1) {
          await guest.check(strangerLoadCommand(ethernet.mtuBytes), 'loading Soft-RoCE');
          return;
        }
        if (this.#ownModules.length > 0) await guest.check(listModules, 'listing your modules');
        const command = isEthernet ? ethernetLoadCommand(index, hasRoce, network) : loadCommand(isManaged);
        await guest.check(command, 'loading the drivers');
        // Modules that replace stock ones are loaded by now.
        for (const name of this.#ownModules)
          await guest.check(`modprobe ${name}`, `loading your module ${name}`);
      }),
    );
  }

  /** Interrupts of the loaded drivers, as counted by the guests and the devices. @throws GuestError */
  async compareInterrupts(): Promise<VectorComparison[]> {
    for (let attempt = 1; ; attempt++) {
      const compared = await this.#compareOnce();
      if (attempt === interruptAttempts || compared.every(({ isServed }) => isServed)) return compared;
      await delay(interruptPauseMs);
    }
  }

  /** Compares interrupts, powers the guests off, and makes the report. @throws GuestError */
  async finish(): Promise<SessionResult> {
    if (this.#hasPeer) await this.#untilPeerEnds();
    const interrupts = await this.compareInterrupts();
    this.#listening.isOn = false;
    await Promise.all(this.guests.map((guest) => guest.powerOff()));
    const report = await this.machine.close();
    await this[Symbol.asyncDispose]();
    return { versions: this.versions, interrupts, report };
  }

  /** Ends a session in which a guest has disconnected: no interrupts can be compared, but the devices still report. */
  async abandon(): Promise<SessionResult> {
    this.#listening.isOn = false;
    await Promise.all(this.guests.map((guest) => guest.dispose()));
    const report = await this.machine.close();
    await this[Symbol.asyncDispose]();
    return { versions: this.versions, interrupts: [], report };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#peerTimer);
    await Promise.all(this.guests.map((guest) => guest.dispose()));
    await this.machine.close().catch(() => {});
    this.#removeFolder();
  }

  /** Gives the program of the simulated host time to end: the report contains its result. */
  async #untilPeerEnds(): Promise<void> {
    const limit = new AbortController();
    const patience = delay(peerPatienceMs, undefined, { signal: limit.signal }).catch(() => {});
    await Promise.race([this.machine.peerEnded, this.machine.ended, patience]);
    limit.abort();
  }

  /** Programs in the guest may wait indefinitely for a failed program: the guest is then switched off. */
  #peerHasEnded({ program, outcome }: PeerState): void {
    if (outcome !== 'failed') return;
    const reason = `program ${program} of the peer has failed, and the command did not end in the ${failedPeerPatienceMs / 1000} s after that`;
    this.#peerTimer = setTimeout(() => {
      for (const guest of this.guests) void guest.dispose(reason);
    }, failedPeerPatienceMs);
  }

  async #compareOnce(): Promise<VectorComparison[]> {
    const texts = await Promise.all(this.guests.map((guest) => guest.check('cat /proc/interrupts')));
    const { nodes } = await this.machine.report();
    return nodes.flatMap(({ interrupts }, adapter) => {
      const hasAll = this.guests.length === 1;
      const text = texts[hasAll ? 0 : adapter]!;
      return comparedWithDevice(adapter, this.adapterAddress(hasAll ? adapter : 0), text, interrupts);
    });
  }
}

/** The simulated host's program, as the steps of a scenario use it: the limits of waiting are of wall-clock time. */
const peerOf = (machine: ServedMachine): StagePeer => ({
  put: (name, value) => machine.put(name, value),
  take: (name, limitMs) =>
    Promise.race([
      machine.take(name),
      machine.peerEnded.then(() => undefined),
      delay(limitMs, undefined, { ref: false }),
    ]),
  ended: () => machine.peerEnded,
});

/** Waits for all, and leaves none running if one fails. */
async function startAll(options: readonly LinuxGuestOptions[]): Promise<LinuxGuest[]> {
  const outcomes = await Promise.allSettled(options.map((one) => LinuxGuest.start(one)));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  const started = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  if (failed !== undefined) {
    await Promise.all(started.map((guest) => guest.dispose()));
    throw failed.reason;
  }
  return started;
}

const networkCommand = (index: number): string =>
  [
    'modprobe -a virtio_pci virtio_net',
    `ip addr add 10.0.0.${index + 1}/24 dev eth0`,
    'ip link set eth0 up',
    'printf "10.0.0.1 guest0\\n10.0.0.2 guest1\\n" >>/etc/hosts',
  ].join(' && ');

function versionsOf({ qemuRoot, toolsRoot, kernelVersion }: GuestFiles): SessionVersions {
  const versionIn = (root: string, name: string): string =>
    packagesOfKit(root).find((one) => one.name === name)?.version ?? 'unknown';
  return {
    kernel: kernelVersion,
    qemu: versionIn(qemuRoot, 'qemu-system-x86'),
    rdmaCore: versionIn(toolsRoot, 'libibverbs1'),
    perftest: versionIn(toolsRoot, 'perftest'),
  };
}
