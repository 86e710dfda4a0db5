/**
 * The PCs, the HCAs in them, and what is between the HCAs: one clock, one thread, nothing of the wall clock's.
 *
 *     the PC of the earliest instant runs a quantum ─► devices come to the PCs' instant ─► interrupts, for the next quantum
 *     all halted: time passes to the next timer of a PC, or to what a device has due
 */
import { ConfigurationError, defaultsOf, nsToPs, outsideOfMicrotasks, psPerUs } from '../../base/index.ts';
import type { AnalysisOptions } from '../../machine/analysis/index.ts';
import type { Fault } from '../../machine/faults/index.ts';
import type { JsonValue } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { Topology } from '../../machine/topology/index.ts';
import { type Cabling, Emulation, type PeerProgram, servingParameters } from '../serve/index.ts';
import type { BootFiles } from './boot.ts';
import { ExchangeRelay } from './exchange-relay.ts';
import { chanceOf, noChance } from './jitter.ts';
import { LockstepTime } from './lockstep-time.ts';
import type { PcConfig } from './parameters.ts';
import { Pc, type PcSnapshot } from './pc.ts';
import { PcNetwork } from './pc-network.ts';
import type { PcProfileOptions } from './pc-profile.ts';
import { SeededNumbers } from './seeded-numbers.ts';

export interface PcMachineOptions {
  /** v86's machine code. */
  readonly coreCode: Uint8Array;
  readonly config: MachineConfig;
  readonly pc: PcConfig;
  /** PCs, each with an HCA. */
  readonly pcCount: number;
  readonly cabling: Cabling;
  /** The fabric whose first hosts the PCs are; left out: none. */
  readonly fabric?: Topology | undefined;
  readonly faults: readonly Fault[];
  readonly shortcuts?: boolean;
  readonly analysis: AnalysisOptions | undefined;
  readonly seed: number;
  /** Seed of the PCs' chance (jitter.ts); left out: nothing happens by chance. */
  readonly jitter?: number | undefined;
  /** Left out: no profile is taken. */
  readonly profile?: PcProfileOptions | undefined;
  /** A simulated host at the other end of the one PC's cable; left out: none. */
  readonly peer?: PcPeer | undefined;
}

/** A simulated host beside a PC, and how the PC's programs reach its program. */
export interface PcPeer {
  readonly program: PeerProgram;
  /** Receives the values that the program puts into the exchange, but for those of TCP. */
  readonly onValue: (name: string, value: JsonValue) => void;
  /** IPv4 addresses of both on the PC's Ethernet, and the port at which the program is reached; left out: by the cable alone. */
  readonly network?: { readonly pc: number; readonly peer: number; readonly port: number };
}

const descriptorsOfPc = 4096;
/** A core drains its write-combining buffer at once when it has nothing to add; this is guest time. */
const combineHoldUs = 1;

export class PcMachine {
  readonly emulation: Emulation;
  readonly pcs: readonly Pc[];
  readonly #time: LockstepTime;
  readonly #options: PcMachineOptions;
  readonly #network: PcNetwork;
  readonly #relay: ExchangeRelay | undefined;

  private constructor(
    options: PcMachineOptions,
    emulation: Emulation,
    time: LockstepTime,
    pcs: readonly Pc[],
    relay: ExchangeRelay | undefined,
  ) {
    this.#relay = relay;
    this.#options = options;
    this.emulation = emulation;
    this.#time = time;
    this.pcs = pcs;
    this.#network = new PcNetwork(pcs, options.pc.networkLatencyUs * psPerUs, relay?.station);
  }

  /** PCs without software. @throws ConfigurationError; CorePatchError */
  static async make(options: PcMachineOptions): Promise<PcMachine> {
    checkProfile(options.profile);
    const pcs: Pc[] = [];
    let time: LockstepTime | undefined;
    const { peer } = options;
    const put = (name: string, value: JsonValue): void => emulation.putValue(name, value);
    const relay = relayOf(options, put);
    const onValue = (name: string, value: JsonValue): void => {
      // The devices run: they take no value in between.
      if (name.startsWith('tcp.')) relay?.arrived(name, value, time!.instantPs);
      else peer?.onValue(name, value);
    };
    // Devices power on, and software of simulated hosts with them.
    const powerOn = (): Emulation =>
      new Emulation({
        config: options.config,
        hcaCount: options.pcCount,
        cabling: options.cabling,
        fabric: options.fabric,
        faults: options.faults,
        shortcuts: options.shortcuts ?? true,
        serving: { ...defaultsOf(servingParameters), combineHoldUs },
        makeTime: (runner) => {
          time = new LockstepTime(runner);
          return time;
        },
        wall: () => time!.nowMs,
        raise: (descriptor) => pcs[Math.floor(descriptor / descriptorsOfPc)]!.raise(descriptor),
        analysis: options.analysis,
        ...(peer === undefined ? {} : { peer: peer.program, onValue }),
      });
    const emulation = await outsideOfMicrotasks(powerOn);
    for (const [node, slot] of emulation.slots.entries())
      pcs.push(
        await Pc.make({
          name: `pc${node}`,
          coreCode: options.coreCode,
          config: options.pc,
          slot,
          functionConfig: options.config.pcie.function,
          time: time!,
          firstDescriptor: node * descriptorsOfPc,
          seed: options.seed + node,
          chance: options.jitter === undefined ? noChance : chanceOf(options.jitter + node),
          profile: options.profile,
        }),
      );
    return new PcMachine(options, emulation, time!, pcs, relay);
  }

  get time(): LockstepTime {
    return this.#time;
  }

  /**
   * Every PC continues from the same snapshot; their Ethernet cards keep their own addresses.
   * @param seed of random numbers of each PC's own; left out: the snapshot's continue
   */
  async restore(snapshot: PcSnapshot, seed?: number): Promise<void> {
    for (const [node, pc] of this.pcs.entries())
      await pc.restore(
        seed === undefined ? snapshot : { ...snapshot, random: new SeededNumbers(seed + node).state },
      );
    this.#network.addressCards();
  }

  /** Puts a kernel into each PC. @throws ConfigurationError */
  load(files: readonly BootFiles[]): void {
    for (const [node, pc] of this.pcs.entries()) pc.load(files[node]!);
  }

  /** Whether every PC is switched off or dead. */
  get isOver(): boolean {
    return this.pcs.every((pc) => pc.isDead);
  }

  /** Runs one quantum of the PC of the earliest instant, or lets time pass while all are halted. */
  step(): void {
    const pc = this.#earliest();
    this.#network.deliver(pc);
    if (pc.end !== undefined || (pc.isHalted && this.#sleep(pc))) return;
    pc.runQuantum(this.#quantumOf(pc));
    this.#devicesCome(pc);
  }

  /** Devices, and the station of a simulated host, come to a PC's instant. */
  #devicesCome({ clock: { nowPs } }: Pc): void {
    this.emulation.work(0);
    if (this.#relay === undefined) return;
    this.#relay.work();
    if (this.emulation.peer?.hasEnded === true) this.#relay.programEnded(nowPs);
    this.#network.runStation(nowPs);
  }

  /** PCs that their guests have not ended; all, if they have ended all. */
  get #running(): readonly Pc[] {
    const running = this.pcs.filter(({ end }) => end === undefined);
    return running.length > 0 ? running : this.pcs;
  }

  /** The earliest instant of a PC, in picoseconds since power-on. */
  get nowPs(): number {
    return this.#earliest().clock.nowPs;
  }

  #earliest(): Pc {
    return this.#running.reduce((first, pc) => (pc.clock.nowPs < first.clock.nowPs ? pc : first));
  }

  /**
   * Instructions until devices must come along: few while they are busy or another PC runs, and never past what they, or a timer
   * of another PC, have due.
   */
  #quantumOf(pc: Pc): number {
    const { busyQuantumInstructions, peerQuantumInstructions, idleQuantumInstructions } = this.#options.pc;
    const until = (duePs: number): number => pc.clock.instructionsIn(Math.max(0, duePs - pc.clock.nowPs));
    return Math.min(
      this.#options.profile?.quantumInstructions ?? idleQuantumInstructions,
      idleQuantumInstructions,
      Math.max(busyQuantumInstructions, until(this.#time.nextPs)),
      Math.max(peerQuantumInstructions, until(this.#othersActPs(pc))),
    );
  }

  /** Instant at which another PC may act by itself: it runs, or a timer of its wakes it. */
  #othersActPs(pc: Pc): number {
    let earliestPs = Number.POSITIVE_INFINITY;
    for (const each of this.pcs)
      if (each !== pc && each.end === undefined)
        earliestPs = Math.min(
          earliestPs,
          each.isHalted ? Math.min(each.wakesAtPs, each.nextInterruptPs) : each.clock.nowPs,
        );
    return earliestPs;
  }

  /**
   * Lets a halted PC sleep until its timer, a device's event or another PC's instant.
   * @returns false if its timer is due
   */
  #sleep(pc: Pc): boolean {
    const { nowPs } = pc.clock;
    const timerPs = pc.wakesAtPs;
    if (timerPs <= nowPs) return false;
    const heldPs = pc.function.heldUntilPs > 0 ? pc.function.heldUntilPs : Number.POSITIVE_INFINITY;
    const networkPs = Math.min(this.#network.nextPs(pc), this.#network.stationPs);
    const ownPs = Math.min(networkPs, pc.nextInterruptPs, heldPs);
    const duePs = Math.min(this.#time.nextPs + 1, ownPs, this.#othersActPs(pc));
    const untilPs = Math.min(timerPs, Math.max(nowPs + 1, duePs));
    pc.sleepUntil(untilPs);
    this.#devicesCome(pc);
    return true;
  }
}

/** Locally administered, as those of the PCs. */
const stationMac = Uint8Array.of(0x02, 0, 0, 0, 0, 0xfe);

function relayOf(
  { peer, config }: PcMachineOptions,
  put: (name: string, value: JsonValue) => void,
): ExchangeRelay | undefined {
  if (peer?.network === undefined) return undefined;
  const { pc: pcAddress, peer: address, port } = peer.network;
  const lingerPs = 2 * nsToPs(config.machine.exchangeLatencyNs);
  return new ExchangeRelay({
    ...{ mac: stationMac, address, port, limits: config.net.stack, pcAddress, lingerPs, put },
  });
}

const profileQuantumMin = 50;
const profileQuantumMax = 50_000;

function checkProfile({ quantumInstructions: quantum }: PcProfileOptions = {}): void {
  if (quantum === undefined) return;
  if (!Number.isInteger(quantum) || quantum < profileQuantumMin || quantum > profileQuantumMax)
    throw new ConfigurationError(
      'quantumInstructions',
      quantum,
      `a whole number from ${profileQuantumMin} to ${profileQuantumMax}`,
    );
}
