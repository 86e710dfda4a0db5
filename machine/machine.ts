/**
 * The machine as a library: hosts and HCAs built from a profile, programs on the hosts, control of simulated time, and
 * inspection of everything in between.
 *
 *     await using machine = await Machine.create({ set: { 'wire.speed': 'FDR' } });
 *     const ping = await machine.load({ node: 0, run: async ({ cpu, verbs }) => { … } });
 *     await machine.run();
 *     console.log(machine.nowPs, await machine.results(), (await machine.report()).checks);
 *
 * A machine runs in one thread (`single`) or in several; its behaviour and its report are the same.
 */
import {
  assertRange,
  ConfigurationError,
  ImageError,
  InvariantError,
  msToPs,
  NEVER,
  nsToPs,
  ObjectImage,
  pageBytes,
  psPerUs,
} from '../base/index.ts';
import { type BlockState, type ExactPs, epochLengthPs, type RunOutcome } from '../sim/index.ts';
import {
  type Analysis,
  type AnalysisOptions,
  captureFile,
  checkCapture,
  checkCrossing,
  droppedOf,
  type NodeConnections,
} from './analysis/index.ts';
import { joinCosts, type NodeCosts, type OperationCost, type OtherCost } from './costs/index.ts';
import type { Evidence } from './evidence/index.ts';
import { checkedFaults, type FaultPlan, faultText } from './faults/index.ts';
import { checkConfigOffset, checkPhysical, checkRegister } from './inspection.ts';
import { checkOptions, type OptionKind, optionKinds } from './known-options.ts';
import { configuredOf } from './machine-hash.ts';
import type { Held } from './node/held.ts';
import { jsonCopy } from './node/json-value.ts';
import type { LinkPackets } from './node/packet-log.ts';
import type { ProgramOrder, ProgressListener } from './node/program-runner.ts';
import type { WireCapture } from './node/wire-log.ts';
import { PartRuns } from './part-runs.ts';
import { MachinePart } from './partition/machine-part.ts';
import { localPort, type PartPort } from './partition/part-port.ts';
import { checkedPartition, type Partition } from './partition/placement.ts';
import { loadProgram } from './partition/program-module.ts';
import { WorkerParts } from './partition/worker-parts.ts';
import { adapterName, hostName, type MachinePlan, planMachine, type Watch, watches } from './plan.ts';
import { configHashOf, type MachineConfig, type ParameterValues } from './profile/index.ts';
import {
  addressOf,
  type JsonValue,
  type LogLine,
  type ProgramFunction,
  type ProgramOptions,
  type ProgramState,
} from './program.ts';
import { buildReport } from './report/build-report.ts';
import type { HcaLedger } from './report/hca-ledger.ts';
import type { HostLedger } from './report/host-ledger.ts';
import type { NicLedger } from './report/nic-ledger.ts';
import type { Report } from './report/schema.ts';
import type { SwitchLedger } from './report/switch-ledger.ts';
import { type RunFacts, runFactsOf } from './run-facts.ts';
import { type RunSignal, underSignal } from './run-signal.ts';
import { type DroppedRecords, mergedTimeline, type Timeline } from './timeline/index.ts';
import { declaredOf, switchesOf, type Topology, type TopologyEntry } from './topology/index.ts';

export interface MachineOptions {
  /** Name of a profile or a JSON file; default `connectx3-qdr`. */
  readonly profile?: string;
  /** Parameters to change, by path. */
  readonly set?: ParameterValues;
  /** Placement of the parts in threads; default `single`. */
  readonly partition?: Partition;
  /** Seed of all random numbers: `machine.seed`. */
  readonly seed?: number;
  /** Number of hosts: `machine.nodeCount`. */
  readonly nodes?: number;
  /** Hosts and the cables between them; default pairs: host 0 is cabled to host 1, 2 to 3. */
  readonly topology?: TopologyEntry;
  /** Faults to inject; docs/how-to/faults.md lists them. */
  readonly faults?: FaultPlan;
  /** Seed for reordering events that one instant leaves unordered: the report must not change. */
  readonly shuffleSeed?: number;
  /**
   * False disables everything that only makes the simulation faster: work ahead of its turn (sim/run-ahead.ts), early
   * placement of the data that a device reads, and zero-copy of the data that it writes. The report must not change.
   * Default true.
   */
  readonly shortcuts?: boolean;
  /** A trace of the traffic between hosts and HCAs, and a linter for the drivers; default: neither. */
  readonly analysis?: AnalysisOptions;
  /**
   * `races`: reports programs that access buffers owned by the device; `accesses`: reports device accesses to memory
   * that was not granted or was revoked; default: no watch.
   */
  readonly watch?: Watch;
  /**
   * Longest real time in milliseconds for which a program may await something that is not simulated (a file, a timer, a
   * promise that never settles): then the run ends with a ProgramFailedError. Default 30,000; Infinity waits
   * indefinitely.
   */
  readonly programPatienceMs?: number;
  /**
   * Whether programs may mark operations ({@link ProgramContext.operation}), to which TLPs, interrupts, system calls
   * and cycles are attributed: {@link Machine.operationCosts}. Default false. It changes no simulated time.
   */
  readonly attributesCosts?: boolean;
  /** Called with the progress of the programs. */
  readonly onProgress?: ProgressListener;
  /**
   * For tests: number of picoseconds after which all parts count from a new epoch (sim/epoch.ts); default 4.4 s. The
   * report must not change.
   */
  readonly epochPs?: number;
  /**
   * For tests: a run ends with a StepLimitError if the machine has processed more events, records and clock edges than
   * this in all, and programs have not ended. They are counted every ten milliseconds of simulated time; default: no
   * limit.
   */
  readonly stepLimit?: number;
}

const { text, flag, whole, natural, positive, object, list } = optionKinds;

/** Limit of a run, and the signal that aborts it. */
export interface RunLimits {
  /** Simulated time; default: no limit. */
  readonly limitPs?: ExactPs | undefined;
  /** An AbortSignal: the run ends with a RunAbortedError within some milliseconds of real time. */
  readonly signal?: RunSignal | undefined;
}

const runLimits: Readonly<Record<keyof RunLimits, OptionKind>> = {
  limitPs: optionKinds.any,
  signal: optionKinds.any,
};

function checkedLimits(limits: ExactPs | RunLimits): RunLimits {
  if (typeof limits === 'number' || typeof limits === 'bigint') return { limitPs: limits };
  checkOptions('run', limits, runLimits);
  return limits;
}

const machineOptions: Readonly<Record<keyof MachineOptions, OptionKind>> = {
  profile: text,
  set: object,
  partition: text,
  seed: whole,
  nodes: whole,
  topology: object,
  faults: list,
  shuffleSeed: natural,
  shortcuts: flag,
  analysis: object,
  watch: text,
  programPatienceMs: positive,
  attributesCosts: flag,
  onProgress: optionKinds.function,
  epochPs: whole,
  stepLimit: positive,
};

const programOptions: Readonly<Record<keyof ProgramOptions, OptionKind>> = {
  node: whole,
  run: optionKinds.any,
  name: text,
  core: natural,
  process: text,
  args: optionKinds.any,
};

/** @throws ConfigurationError for a value that is neither a function nor names one of a module */
function checkCode(name: string, run: unknown): void {
  if (typeof run === 'function') return;
  const { url, exportName } = (run ?? {}) as Readonly<Record<string, unknown>>;
  const address = typeof url === 'object' && url !== null ? (url as { readonly href?: unknown }).href : url;
  const isModule =
    typeof address === 'string' && (exportName === undefined || typeof exportName === 'string');
  if (!isModule)
    throw new ConfigurationError(`run of ${name}`, run, 'a function or a module ({ url, exportName })');
}

/** The HCA attributes costs, and the tap of the verbs library has one user. */
function checkAttribution({ watch }: MachineOptions, { machine }: MachineConfig, topology: Topology): void {
  if (machine.adapter !== 'hca')
    throw new ConfigurationError('attributesCosts', true, 'false with machine.adapter=nic');
  if (watch === 'races')
    throw new ConfigurationError('attributesCosts', true, 'false while races are watched');
  // A packet that a switch has forwarded does not name its host where it arrives: QPs of several hosts have the same numbers.
  if (switchesOf(topology).length > 0)
    throw new ConfigurationError('attributesCosts', true, 'false where the topology has switches');
}

export class Machine implements AsyncDisposable {
  readonly config: MachineConfig;
  /** Hosts, and the cables between their adapters. */
  readonly topology: Topology;
  readonly configHash: string;
  readonly partition: Partition;
  readonly #plan: MachinePlan;
  readonly #ports: readonly PartPort[];
  readonly #workers: WorkerParts | undefined;
  readonly #local: MachinePart | undefined;
  readonly #memories = new Map<number, Uint8Array>();
  readonly #runs: PartRuns;
  #programCount = 0;
  #isClosed = false;

  private constructor(
    plan: MachinePlan,
    partition: Partition,
    onProgress: ProgressListener | undefined,
    epochPs: number | undefined,
    stepLimit: number | undefined,
  ) {
    this.#plan = plan;
    this.config = plan.config;
    this.topology = plan.topology;
    this.configHash = configHashOf(plan.config, plan.faults.map(faultText), declaredOf(plan.topology));
    this.partition = partition;
    if (plan.control === undefined) {
      this.#local = new MachinePart(plan, 0);
      if (onProgress !== undefined) this.#local.onProgress = onProgress;
      this.#ports = [localPort(this.#local)];
    } else {
      this.#workers = new WorkerParts(plan);
      this.#ports = this.#workers.ports;
    }
    const patiencePs = msToPs(plan.config.machine.pollPatienceMs);
    this.#runs = new PartRuns(this.#ports, this.#workers, patiencePs, epochPs, stepLimit);
  }

  /**
   * Builds a machine, powered on at time 0; nothing has run yet.
   * @throws ConfigurationError naming the error in the options
   */
  static async create(options: MachineOptions = {}): Promise<Machine> {
    checkOptions('machine', options, machineOptions);
    const { config, topology } = configuredOf(options);
    const partition = checkedPartition(options.partition ?? 'single');
    if (options.watch !== undefined && !watches.includes(options.watch))
      throw new ConfigurationError('watch', options.watch, `one of ${watches.join(', ')}`);
    checkCapture(options.analysis, topology);
    if (options.attributesCosts === true) checkAttribution(options, config, topology);
    if (partition !== 'single') checkCrossing(options.analysis, `partition ${partition}`);
    const { transport } = config.hca.capability;
    const faults = checkedFaults(options.faults ?? [], config.machine.nodeCount, topology, transport);
    const plan = planMachine({
      config,
      topology,
      faults,
      partition,
      shuffleSeed: options.shuffleSeed,
      shortcuts: options.shortcuts,
      analysis: options.analysis,
      watch: options.watch,
      attributesCosts: options.attributesCosts,
      programPatienceMs: options.programPatienceMs,
    });
    if (options.epochPs !== undefined) assertRange('epochPs', options.epochPs, 3 * psPerUs, epochLengthPs);
    const machine = new Machine(plan, partition, options.onProgress, options.epochPs, options.stepLimit);
    try {
      await Promise.all(machine.#ports.map((port) => port.effort()));
    } catch (error) {
      await machine.close();
      throw error;
    }
    return machine;
  }

  /** Simulated time in picoseconds that all parts have reached: past 2^53 (2.5 hours), the number nearest to {@link instantPs}. */
  get nowPs(): number {
    return Number(this.#runs.instantPs);
  }

  /** The exact simulated time: a bigint if a number would not be exact. */
  get instantPs(): ExactPs {
    return this.#runs.instantPs;
  }

  get nodeCount(): number {
    return this.config.machine.nodeCount;
  }

  // Programs.

  /**
   * Loads a program: it starts when the machine next runs, or once its host's driver has probed the device.
   * @returns its number, for {@link programs} and {@link results}
   * @throws ConfigurationError for a function in a worker partition, for a module that does not load, and if no core is
   * free
   */
  async load<Args>(options: ProgramOptions<Args>): Promise<number> {
    this.#checkIdle('load a program');
    checkOptions('program', options, programOptions);
    const { node, run, core, process } = options;
    this.#checkNode(node);
    const name = options.name ?? `program${this.#programCount}`;
    checkCode(name, run);
    const order: ProgramOrder = {
      name,
      core,
      process,
      args: jsonCopy('args', options.args ?? null),
      number: this.#programCount,
    };
    if (typeof run !== 'function') {
      await this.#portOf(hostName(node)).loadModule(node, order, addressOf(run), run.exportName ?? 'default');
    } else if (this.#local === undefined) {
      throw new ConfigurationError(
        `program ${name}`,
        'a function',
        `a module ({ url, exportName }): functions cannot cross into the workers of partition ${this.partition}`,
      );
    } else {
      this.#local.loadFunction(node, order, run);
    }
    return this.#programCount++;
  }

  /** Outcomes of the programs, in the order in which they were loaded. */
  async programs(): Promise<ProgramState[]> {
    const states = (await Promise.all(this.#ports.map((port) => port.programStates()))).flat();
    return states.toSorted((left, right) => left.number - right.number);
  }

  /**
   * Results of the programs, in the order in which they were loaded; undefined for programs that still run or returned nothing.
   * @typeParam Results their types
   */
  async results<Results extends readonly unknown[] = (JsonValue | undefined)[]>(): Promise<Results> {
    const results: readonly unknown[] = (await this.programs()).map(({ result }) => result);
    return results as Results;
  }

  /** Lines that programs have logged, by simulated time, then node. */
  async log(): Promise<LogLine[]> {
    const lines = (await Promise.all(this.#ports.map((port) => port.logLines()))).flat();
    const order = (left: ExactPs, right: ExactPs): number => (left < right ? -1 : left > right ? 1 : 0);
    return lines.toSorted((left, right) => order(left.atPs, right.atPs) || left.node - right.node);
  }

  // Restoring an earlier state.

  /** Simulated time at which the last host's driver had probed its device; undefined before, and in partitions of several threads. */
  get bootedPs(): ExactPs | undefined {
    return this.#local?.bootedPs;
  }

  /**
   * An image of the booted machine before any program begins; {@link beginAgain} restores it after any run. It can be
   * taken after {@link runToBoot}, unless hosts boot at different instants.
   * @returns undefined if it cannot be taken: in any other state, in partitions of several threads, for a machine that
   * is analysed or attributes
   *   costs
   */
  image(): ObjectImage | undefined {
    this.#checkIdle('take an image');
    const { analysis, attributesCosts } = this.#plan;
    if (this.#local?.isAtRest !== true || analysis !== undefined || attributesCosts) return;
    try {
      return new ObjectImage([this]);
    } catch (error) {
      if (error instanceof ImageError) return;
      throw error;
    }
  }

  /**
   * Restores an image of this machine and starts its programs with other code and arguments; nothing else of them may
   * differ.
   * @param programs as many as were loaded, in the same order
   */
  async beginAgain(image: ObjectImage, programs: readonly ProgramOptions[]): Promise<void> {
    const runs = await Promise.all(programs.map(({ run }) => functionOf(run)));
    image.restore();
    if (programs.length !== this.#programCount)
      throw new ConfigurationError('programs', programs.length, `${this.#programCount}, as were loaded`);
    for (const [number, { node, args }] of programs.entries())
      this.#local!.beginAs(node, number, runs[number]!, jsonCopy('args', args ?? null));
  }

  // Time.

  /**
   * Runs until every host's driver has probed its device, slightly past {@link bootedPs}: if all hosts boot at one
   * instant, no program has begun.
   * @throws RunError as {@link run}; ConfigurationError in partitions of several threads
   */
  async runToBoot(): Promise<RunOutcome> {
    this.#checkIdle('run');
    const local = this.#local;
    if (local === undefined) throw new ConfigurationError('partition', this.partition, 'single');
    return local.waitingForBootsOnly(() => this.#runs.runUntilEnded(bootMarginPs, NEVER));
  }

  /**
   * Runs until all programs have ended (the first time also: until every driver has probed its device) and everything
   * in flight has arrived, or to `limitPs`.
   * @throws RunError if a program or the model throws, a worker is lost, or programs wait for an event that never
   * occurs, also if
   *   they poll for it in a loop, after `machine.pollPatienceMs` of simulated time; RunAbortedError if `signal` is aborted
   *
   * A run that ended with an error or was aborted is the machine's last: the next one throws the same error. Results,
   * log, memory, registers and captures keep their state; the parts may have reached different instants, so that
   * ledgers need not balance.
   */
  async run(limits: ExactPs | RunLimits = {}): Promise<RunOutcome> {
    this.#checkIdle('run');
    const { limitPs = NEVER, signal } = checkedLimits(limits);
    return this.#underSignal(signal, () =>
      this.#runs.runUntilEnded(nsToPs(this.config.machine.drainNs), limitPs),
    );
  }

  /**
   * Runs everything due before `limitPs`; the machine stops there.
   * @throws RunAbortedError as {@link run}
   */
  async runTo(limitPs: ExactPs, options: Pick<RunLimits, 'signal'> = {}): Promise<RunOutcome> {
    this.#checkIdle('run');
    const { signal } = checkedLimits(options);
    return this.#underSignal(signal, () => this.#runs.runTo(limitPs));
  }

  /**
   * Runs until `predicate` holds, checked every `everyPs`; or to `limitPs`.
   * @returns whether it held
   * @throws RunAbortedError as {@link run}
   */
  async runUntil(
    predicate: () => boolean | Promise<boolean>,
    everyPs: number,
    limits: ExactPs | RunLimits = {},
  ): Promise<boolean> {
    const { limitPs = NEVER, signal } = checkedLimits(limits);
    if (typeof predicate !== 'function') throw new ConfigurationError('predicate', predicate, 'a function');
    if (!Number.isSafeInteger(everyPs) || everyPs < 1)
      throw new ConfigurationError('everyPs', everyPs, 'a whole number of at least 1');
    while (!(await predicate())) {
      const { instantPs } = this;
      if (instantPs >= limitPs) return false;
      const nextPs = BigInt(instantPs) + BigInt(everyPs);
      await this.runTo(nextPs < limitPs ? nextPs : limitPs, { signal });
    }
    return true;
  }

  /**
   * Runs until programs have logged this many lines that `isAwaited` accepts, and at most `marginPs` longer; ends
   * earlier if programs end or wait for an event that never occurs.
   * @throws RunError as {@link run}
   */
  async runUntilLogged(isAwaited: (text: string) => boolean, marginPs: number, lineCount = 1): Promise<void> {
    this.#checkIdle('run');
    const local = this.#local;
    const leftCount = async (): Promise<number> =>
      lineCount - (await this.log()).filter(({ text }) => isAwaited(text)).length;
    if (local === undefined) {
      await this.#runs.runInSteps(marginPs, async () => (await leftCount()) <= 0);
      return;
    }
    const left = await leftCount();
    if (left > 0) await local.untilLogged(isAwaited, left, () => this.#runs.runUntilEnded(marginPs, NEVER));
  }

  /** Makes every host's driver remove its device and free all resources. */
  async removeDrivers(): Promise<RunOutcome> {
    this.#checkIdle('remove the drivers');
    for (let node = 0; node < this.nodeCount; node++) await this.#portOf(hostName(node)).removeDriver(node);
    return this.run();
  }

  // Inspection.

  /** A dword of a device's configuration space, as the device stores it; no simulated time passes. */
  async readConfig32(node: number, offset: number): Promise<number> {
    this.#checkNode(node);
    checkConfigOffset(offset);
    return this.#portOf(adapterName(this.config, node)).readConfig32(node, offset);
  }

  /**
   * A little-endian dword of BAR 0 (registers) or 2 (doorbells: write-only, reads zero); no simulated time passes.
   * Reading a register with a read side effect triggers it.
   */
  async readRegister32(node: number, bar: 0 | 2, offset: number): Promise<number> {
    this.#checkNode(node);
    checkRegister(this.config, bar, offset);
    return this.#portOf(adapterName(this.config, node)).readRegister32(node, bar, offset);
  }

  /** A host's whole physical memory; the simulation works on the same memory. */
  async physicalMemory(node: number): Promise<Uint8Array> {
    this.#checkNode(node);
    let memory = this.#memories.get(node);
    if (memory === undefined) {
      const buffer = await this.#portOf(hostName(node)).memoryOf(node);
      memory = new Uint8Array(buffer, 0, buffer.byteLength);
      this.#memories.set(node, memory);
    }
    return memory;
  }

  /**
   * A copy of physical memory.
   * @throws ConfigurationError for a range outside it
   */
  async readPhysical(node: number, address: number, lengthBytes: number): Promise<Uint8Array> {
    const memory = await this.physicalMemory(node);
    checkPhysical(memory.length, address, lengthBytes);
    return memory.slice(address, address + lengthBytes);
  }

  /**
   * A copy of the memory of a process, by user address.
   * @throws ConfigurationError if the range is not mapped
   */
  async readVirtual(
    node: number,
    process: string,
    address: number,
    lengthBytes: number,
  ): Promise<Uint8Array> {
    const memory = await this.physicalMemory(node);
    assertRange('address', address, 0, Number.MAX_SAFE_INTEGER);
    assertRange('lengthBytes', lengthBytes, 0, memory.length);
    const port = this.#portOf(hostName(node));
    const copy = new Uint8Array(lengthBytes);
    for (let done = 0; done < lengthBytes; ) {
      const length = Math.min(lengthBytes - done, pageBytes - ((address + done) % pageBytes));
      const physical = await port.physicalAddress(node, process, address + done);
      if (physical < 0)
        throw new ConfigurationError(
          'address',
          `0x${(address + done).toString(16)}`,
          'mapped in the process',
        );
      copy.set(memory.subarray(physical, physical + length), done);
      done += length;
    }
    return copy;
  }

  /** The present statistics of every host and its adapter. */
  async ledgers(): Promise<{
    readonly hosts: HostLedger[];
    readonly hcas: HcaLedger[];
    readonly nics: NicLedger[];
    readonly switches: SwitchLedger[];
  }> {
    this.#checkIdle('read the ledgers');
    const parts = await Promise.all(this.#ports.map((port) => port.ledgers()));
    return {
      hosts: parts.flatMap(({ hosts }) => hosts),
      hcas: parts.flatMap(({ hcas }) => hcas),
      nics: parts.flatMap(({ nics }) => nics),
      switches: parts.flatMap(({ switches }) => switches),
    };
  }

  /**
   * The cost of each operation that programs have marked, by host and in order of their start; and the cost outside
   * marked operations.
   * @throws ConfigurationError unless the machine was created with `attributesCosts`
   */
  async operationCosts(): Promise<{ readonly operations: OperationCost[]; readonly others: OtherCost[] }> {
    this.#checkIdle('read the costs of operations');
    if (!this.#plan.attributesCosts)
      throw new ConfigurationError('attributesCosts', false, 'true, to ask for the costs of operations');
    const parts = await Promise.all(this.#ports.map((port) => port.costs()));
    const devices = parts.flatMap(({ hcas }) => hcas);
    const nodes = parts
      .flatMap(({ hosts }) => hosts)
      .toSorted(([left], [right]) => left - right)
      .flatMap(([node, processor]): NodeCosts[] => {
        const device = devices.find(([of]) => of === node)?.[1];
        return device === undefined ? [] : [{ node, processor, device }];
      });
    return joinCosts(nodes, this.topology);
  }

  /** Present contents of the blocks of each node, by name: equal to those of the newly built machine after all software has ended. */
  async held(): Promise<Held[]> {
    this.#checkIdle('count what is held');
    const parts = (await Promise.all(this.#ports.map((port) => port.held()))).flat();
    return Array.from({ length: this.nodeCount }, (_, node) =>
      Object.assign({}, ...parts.filter(([of]) => of === node).map(([, held]) => held)),
    );
  }

  /**
   * The present state of the blocks of each node: the HCA's data path and wire port with the queue pairs, or the NIC;
   * DMA engines, PCIe function, link and root complex; the processor, the IOMMU and the system DMA controller; and
   * counts of held resources; of a switch its ports, buffers and tables. Two runs of the same machine return the same at the same instant, in any partition.
   */
  async inspect(): Promise<BlockState[]> {
    this.#checkIdle('inspect the blocks');
    const parts = (await Promise.all(this.#ports.map((port) => port.inspect()))).flat();
    return this.topology.nodes.map((_, node) =>
      Object.assign({}, ...parts.filter(([of]) => of === node).map(([, state]) => state)),
    );
  }

  /** Findings of the analysers so far, by host; empty unless the options request an analysis. */
  async analyses(): Promise<Analysis[]> {
    this.#checkIdle('read the analyses');
    return (await Promise.all(this.#ports.map((port) => port.analyses()))).flat();
  }

  /** The connections that drivers have made so far, as the analysers saw them; empty unless the options request an analysis. */
  async connections(): Promise<NodeConnections[]> {
    this.#checkIdle('read the connections');
    return (await Promise.all(this.#ports.map((port) => port.connections()))).flat();
  }

  /** Packets that have crossed the PCIe links, by node and direction; empty unless the analysis keeps packets. */
  async packets(): Promise<LinkPackets[]> {
    this.#checkIdle('read the packets');
    return (await Promise.all(this.#ports.map((port) => port.packets()))).flat();
  }

  /** Records of all parts so far, by time, then process; empty unless the analysis requests a timeline. */
  async timeline(): Promise<Timeline> {
    this.#checkIdle('read the timeline');
    const parts = await Promise.all(this.#ports.map((port) => port.observations()));
    return mergedTimeline(parts.flat(), this.topology);
  }

  /** Evidence so far of why requests failed or never completed; empty unless the analysis requests it. */
  async evidence(): Promise<Evidence> {
    this.#checkIdle('read the evidence');
    const parts = await Promise.all(this.#ports.map((port) => port.evidence()));
    const byNode = (left: { readonly node: number }, right: { readonly node: number }): number =>
      left.node - right.node;
    return {
      topology: this.topology,
      devices: parts.flatMap(({ devices }) => devices).toSorted(byNode),
      hosts: parts.flatMap(({ hosts }) => hosts).toSorted(byNode),
    };
  }

  /** Grows with each post, completion and served request if the analysis requests evidence; else 0. */
  async progress(): Promise<number> {
    this.#checkIdle('read the progress');
    const parts = await Promise.all(this.#ports.map((port) => port.progress()));
    return parts.reduce((sum, count) => sum + count, 0);
  }

  /**
   * Packets that have passed the ends of the cable, as the bytes of a pcapng file: an interface for each end that
   * `analysis.capture` names, times in picoseconds of simulated time.
   */
  async capture(): Promise<Uint8Array<ArrayBuffer>> {
    return captureFile(await this.#captures());
  }

  /** Number of packets that {@link capture} has of each end, and of packets dropped because it was full. */
  async captureDrops(): Promise<DroppedRecords[]> {
    return (await this.#captures()).map(droppedOf);
  }

  /** The report of everything so far. */
  async report(): Promise<Report> {
    const { hosts, hcas, nics, switches } = await this.ledgers();
    return buildReport(this, this.instantPs, hosts, hcas, nics, this.#plan.faults, switches);
  }

  /** Facts of the computation: partition, threads, wall clock, events. Never part of the report. */
  async runFacts(): Promise<RunFacts> {
    const efforts = await Promise.all(this.#ports.map((port) => port.effort()));
    return runFactsOf(this.partition, this.#plan.placement.length, this.#runs.wallMs, this.nowPs, efforts);
  }

  /** Done and total as the programs of a node last reported them. */
  progressOf(node: number): { readonly done: number; readonly total: number } {
    this.#checkNode(node);
    const [done, total] = new Float64Array(this.#plan.progress, node * 16, 2);
    return { done: done!, total: total! };
  }

  /** For tests: terminates a worker as a crash would. */
  async terminateWorker(thread: number): Promise<void> {
    if (this.#workers === undefined)
      throw new ConfigurationError('partition', this.partition, 'one with workers');
    await this.#workers.terminate(thread);
  }

  /** Terminates all workers. A run in progress ends with an error. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#runs.isRunning) this.#abort('the machine was closed');
    else if (this.#plan.analysis !== undefined)
      await Promise.allSettled(this.#ports.map((port) => port.closeAnalysers()));
    await this.#workers?.close();
  }

  /**
   * Closes the machine after its programs have ended; the next machines of this process reuse its hosts' memory,
   * zeroed. Memory returned by {@link physicalMemory} is not reused.
   */
  async retire(): Promise<void> {
    await this.close();
    this.#local?.retire();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #underSignal<T>(signal: RunSignal | undefined, run: () => Promise<T>): Promise<T> {
    return underSignal(signal, (reason) => this.#abort(reason), run);
  }

  /** Ends the run in progress with a RunAbortedError. */
  #abort(reason: string): void {
    this.#local?.abort(reason);
    this.#workers?.abort(reason);
  }

  /** Captures at the ends of the cable, by node. */
  async #captures(): Promise<WireCapture[]> {
    this.#checkIdle('read the capture');
    const captures = (await Promise.all(this.#ports.map((port) => port.captures()))).flat();
    return captures.toSorted((left, right) => left.node - right.node);
  }

  #portOf(process: string): PartPort {
    return this.#ports[this.#plan.placement.findIndex((names) => names.includes(process))]!;
  }

  #checkNode(node: number): void {
    if (Number.isInteger(node) && node >= 0 && node < this.nodeCount) return;
    throw new ConfigurationError('node', node, `an integer from 0 to ${this.nodeCount - 1}`);
  }

  #checkIdle(what: string): void {
    if (this.#isClosed) throw new InvariantError(`machine, to ${what},`, 'closed', 'open');
    if (this.#runs.isRunning) throw new InvariantError(`machine, to ${what},`, 'running', 'standing still');
  }
}

const functionOf = (run: ProgramOptions['run']): ProgramFunction | Promise<ProgramFunction> =>
  typeof run === 'function' ? run : loadProgram(addressOf(run), run.exportName ?? 'default');

/**
 * Time by which a run to the boot may pass it, and thus by which its processes may run in one turn. A core takes a
 * microsecond or two to wake the program that waits for the driver; with a margin of a picosecond a boot takes five
 * times as many turns.
 */
const bootMarginPs = 100_000;
