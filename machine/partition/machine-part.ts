/**
 * One thread's share of a machine: its nodes, their runner, and the queries about them. In partition `single` the
 * machine holds its only part; else each worker has one, called over comlink.
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import type { ProcessorCost } from '../../host/index.ts';
import type { CostLedger, Hca, HcaSetup } from '../../hw/hca/index.ts';
import type { Nic } from '../../hw/nic/index.ts';
import {
  type BlockState,
  type ExactPs,
  type LogicalProcess,
  type ProcessObservations,
  type Runner,
  type RunOutcome,
  SharedControl,
  SingleRunner,
  WorkerRunner,
} from '../../sim/index.ts';
import { type Analysis, type AnalysisOptions, analysisOf, type NodeConnections } from '../analysis/index.ts';
import type { PartEvidence } from '../evidence/index.ts';
import { type FabricSwitch, fabricSwitchOf } from '../node/fabric-switch.ts';
import { HcaNode } from '../node/hca-node.ts';
import { type Held, heldByHca, heldByHost } from '../node/held.ts';
import { HostNode } from '../node/host-node.ts';
import { inspectHca, inspectHost, inspectNic } from '../node/inspect.ts';
import { NicNode } from '../node/nic-node.ts';
import { type LinkPackets, packetsOf } from '../node/packet-log.ts';
import { type ProgramOrder, ProgramRunner, type ProgressListener } from '../node/program-runner.ts';
import { type WireCapture, wireCapturesOf } from '../node/wire-log.ts';
import { hcaName, hostName, type MachinePlan, nicName, switchName } from '../plan.ts';
import type { JsonValue, LogLine, ProgramFunction, ProgramState } from '../program.ts';
import { type HcaLedger, hcaLedgerOf } from '../report/hca-ledger.ts';
import { type HostLedger, hostLedgerOf } from '../report/host-ledger.ts';
import { type NicLedger, nicLedgerOf } from '../report/nic-ledger.ts';
import { type SwitchLedger, switchLedgerOf } from '../report/switch-ledger.ts';
import { fabricRoutesOf, hostsOf, switchesOf } from '../topology/index.ts';
import { LoopTurns } from './loop-turns.ts';
import { type PartActivity, PartMonitor } from './part-activity.ts';
import { loadProgram } from './program-module.ts';

/** Report of one part at the end of a run: plain data. */
export interface PartLedgers {
  readonly hosts: readonly HostLedger[];
  readonly hcas: readonly HcaLedger[];
  readonly nics: readonly NicLedger[];
  readonly switches: readonly SwitchLedger[];
}

/** Costs of marked operations, with the node. */
export interface PartCosts {
  readonly hosts: readonly (readonly [node: number, processor: readonly ProcessorCost[]])[];
  readonly hcas: readonly (readonly [node: number, device: CostLedger])[];
}

/** Contents of blocks, with their node. */
export type PartHeld = readonly (readonly [node: number, held: Held])[];
export type PartState = readonly (readonly [node: number, state: BlockState])[];

/** Facts of the computation, not of the machine. */
export interface PartEffort {
  readonly eventCount: number;
  readonly recordCount: number;
  readonly edgeCount: number;
  readonly turnCount: number;
}

/** Progress of each logical process of a part, and the earliest instant of the epoch at which anything is due. */
export interface PartSteps {
  readonly counts: readonly { readonly name: string; readonly stepCount: number }[];
  readonly nextPs: number;
  /** Instant of the present epoch that the part has reached. */
  readonly nowPs: number;
}

export class MachinePart {
  readonly hosts: readonly HostNode[];
  readonly hcas: readonly HcaNode[];
  readonly nics: readonly NicNode[];
  readonly switches: readonly FabricSwitch[];
  readonly programs: readonly ProgramRunner[];
  readonly #analysis: AnalysisOptions | undefined;
  readonly #processes: readonly LogicalProcess[];
  readonly #monitor: PartMonitor;
  readonly #runner: Runner & { readonly turnCount: number };
  readonly #single: SingleRunner | undefined;

  /** @param thread index in the plan's placement */
  constructor(plan: MachinePlan, thread: number) {
    const names = plan.placement[thread]!;
    this.#analysis = plan.analysis;
    const nodes = hostsOf(plan.topology);
    // An HCA and its host in the same thread share data that make the simulation faster.
    const sharedOf = (node: number): HcaSetup['shared'] =>
      plan.shortcuts && names.includes(hostName(node)) ? { earlyPlacement: true, zeroCopy: true } : undefined;
    this.hcas = nodes
      .filter((node) => names.includes(hcaName(node)))
      .map((node) => new HcaNode(plan, node, undefined, sharedOf(node)));
    this.hosts = nodes
      .filter((node) => names.includes(hostName(node)))
      .map((node) => new HostNode(plan, node, this.hcas.find((found) => found.node === node)?.hca.shared));
    this.nics = nodes.filter((node) => names.includes(nicName(node))).map((node) => new NicNode(plan, node));
    const switches = switchesOf(plan.topology).filter((node) => names.includes(switchName(node)));
    const routes =
      switches.length === 0 ? undefined : fabricRoutesOf(plan.topology, plan.config.machine.routing);
    this.switches = switches.map((node) => fabricSwitchOf(plan, node, routes!));
    this.programs = this.hosts.map((host) => new ProgramRunner(host, plan.progress));
    const all = [...this.hosts, ...this.hcas, ...this.nics, ...this.switches].map(({ lp }) => lp);
    this.#monitor = new PartMonitor(
      this.hosts,
      [...this.hcas, ...this.nics, ...this.switches].map(({ lp }) => lp),
    );
    this.#processes = names.map((name) => all.find((lp) => lp.name === name)!);
    if (plan.control === undefined) {
      const turns = new LoopTurns();
      this.#single = new SingleRunner(this.#processes, () => turns.due());
      this.#runner = this.#single;
    } else this.#runner = new WorkerRunner(new SharedControl(plan.control), thread, this.#processes);
  }

  /** Ends the run of a machine with one part. A run of several parts is ended through the memory that they share. */
  abort(reason: string): void {
    this.#single?.abort(reason);
  }

  set onProgress(listener: ProgressListener) {
    for (const programs of this.programs) programs.onProgress = listener;
  }

  /** Loads a function as a program of a host in this thread. */
  loadFunction(node: number, order: ProgramOrder, run: ProgramFunction): void {
    this.programs[this.#indexOf(node)]!.load(order, run);
  }

  /** Loads a function that a module exports. */
  async loadModule(node: number, order: ProgramOrder, url: string, exportName: string): Promise<void> {
    this.loadFunction(node, order, await loadProgram(url, exportName));
  }

  /** Simulated time at which the last driver had probed its device; undefined until all have. */
  get bootedPs(): ExactPs | undefined {
    const all = this.hosts.map(({ bootedPs }) => bootedPs);
    if (!all.every((ps) => ps !== undefined)) return undefined;
    return all.reduce((last, ps) => (last > ps ? last : ps));
  }

  /** Whether an image of the part can be taken: it has booted, no program has begun, and no other thread has a pending wait. */
  get isAtRest(): boolean {
    return (
      this.bootedPs !== undefined &&
      this.programs.every(({ isWaiting }) => isWaiting) &&
      this.hosts.every(({ host }) => host.cores.every(({ hasOnlyPrograms }) => hasOnlyPrograms))
    );
  }

  /** Runs as if the boot were each host's only program: does not wait for programs, none of which has begun. */
  async waitingForBootsOnly<Outcome>(run: () => Promise<Outcome>): Promise<Outcome> {
    if (this.bootedPs !== undefined) throw new InvariantError('hosts', 'booted', 'before their boot');
    const programs = this.hosts.flatMap(({ lp }, host) => this.programs[host]!.states().map(() => lp));
    for (const lp of programs) lp.markEnded();
    try {
      return await run();
    } finally {
      for (const lp of programs) lp.addMember();
    }
  }

  /** Runs as if programs ended as soon as they have logged this many lines that `isAwaited` accepts. */
  async untilLogged<Outcome>(
    isAwaited: (text: string) => boolean,
    lineCount: number,
    run: () => Promise<Outcome>,
  ): Promise<Outcome> {
    let left = lineCount;
    const onLog = (text: string): void => {
      if (isAwaited(text) && --left === 0) for (const { lp } of this.hosts) lp.setMembersAside();
    };
    for (const programs of this.programs) programs.onLog = onLog;
    try {
      return await run();
    } finally {
      for (const programs of this.programs) programs.onLog = undefined;
      for (const { lp } of this.hosts) lp.takeMembersBack();
    }
  }

  /**
   * Starts a program in a restored part: see {@link ProgramRunner.beginAs}.
   */
  beginAs(node: number, number: number, run: ProgramFunction, args: JsonValue): void {
    this.programs[this.#indexOf(node)]!.beginAs(number, run, args);
  }

  runTo(limitPs: number): Promise<RunOutcome> {
    return this.#runner.runTo(limitPs);
  }

  runUntilEnded(drainPs: number, limitPs: number): Promise<RunOutcome> {
    return this.#runner.runUntilEnded(drainPs, limitPs);
  }

  /**
   * Begins a new epoch.
   * @returns the earliest instant in it at which anything is due
   */
  rebase(ps: number): number {
    this.#runner.rebase(ps);
    return this.#runner.nextPs;
  }

  /** Due work of the part between two runs. */
  activity(): PartActivity {
    return { ...this.#monitor.take(), nextPs: this.#runner.nextPs };
  }

  /** Steps so far: see {@link LogicalProcess.stepCount}. */
  steps(): PartSteps {
    const counts = this.#processes.map(({ name, stepCount }) => ({ name, stepCount }));
    return {
      counts,
      nextPs: this.#runner.nextPs,
      nowPs: Math.max(...this.#processes.map(({ nowPs }) => nowPs)),
    };
  }

  programStates(): ProgramState[] {
    return this.programs.flatMap((programs) => programs.states());
  }

  logLines(): LogLine[] {
    return [...this.hosts.flatMap(({ kernelLog }) => kernelLog), ...this.programs.flatMap(({ log }) => log)];
  }

  /** Updates all statistics to the present instant and copies them. */
  ledgers(): PartLedgers {
    return {
      hosts: this.hosts.map(hostLedgerOf),
      hcas: this.hcas.map(hcaLedgerOf),
      nics: this.nics.map(nicLedgerOf),
      switches: this.switches.map(switchLedgerOf),
    };
  }

  /** Records of this part's hosts and devices about the costs of marked operations. */
  costs(): PartCosts {
    return {
      hosts: this.hosts.map(({ node, marked }) => [node, marked?.costs() ?? []] as const),
      hcas: this.hcas.flatMap(({ node, hca: { costs } }) =>
        costs === undefined ? [] : [[node, costs.ledger()] as const],
      ),
    };
  }

  /** Present contents of the blocks, by node. */
  held(): PartHeld {
    return [
      ...this.hosts.map((host): PartHeld[number] => [host.node, heldByHost(host)]),
      ...this.hcas.map((hca): PartHeld[number] => [hca.node, heldByHca(hca)]),
    ];
  }

  /** The state of the blocks, by node. */
  inspect(): PartState {
    return [
      ...this.hosts.map((host): PartState[number] => [host.node, inspectHost(host)]),
      ...this.hcas.map((hca): PartState[number] => [hca.node, inspectHca(hca)]),
      ...this.nics.map((nic): PartState[number] => [nic.node, inspectNic(nic)]),
      ...this.switches.map(({ node, device }): PartState[number] => [node, device.inspect()]),
    ];
  }

  /** Packets that arrived at the ends of PCIe links in this thread, if the analysis keeps them. */
  packets(): LinkPackets[] {
    return [
      ...this.hosts.flatMap(({ node, port }) => packetsOf(node, 'toHost', port.reader)),
      ...this.hcas.flatMap(({ node, hca }) => packetsOf(node, 'toDevice', hca.linkPort.reader)),
      ...this.nics.flatMap(({ node, nic }) => packetsOf(node, 'toDevice', nic.linkPort.reader)),
    ];
  }

  /** Records of each process of this thread. */
  observations(): ProcessObservations[] {
    return [...this.hosts, ...this.hcas, ...this.nics, ...this.switches].flatMap(({ stream }) =>
      stream === undefined ? [] : [stream.collect()],
    );
  }

  /** Evidence of why requests fail, of the nodes in this thread. */
  evidence(): PartEvidence {
    return {
      devices: this.hcas.flatMap(({ journal }) => (journal === undefined ? [] : [journal.collect()])),
      hosts: this.hosts.flatMap(({ journal, host }) =>
        journal === undefined ? [] : [journal.collect(host)],
      ),
    };
  }

  /** Measure of progress: see {@link DeviceJournal.progressCount}. */
  progress(): number {
    const journals = [...this.hcas, ...this.hosts].map(({ journal }) => journal?.progressCount ?? 0);
    return journals.reduce((sum, count) => sum + count, 0);
  }

  /** Packets that have passed the ends of cables in this thread, if the analysis keeps them. */
  captures(): WireCapture[] {
    return [...this.hcas, ...this.nics, ...this.switches].flatMap(({ node, lp, wireLogs }) =>
      wireCapturesOf(node, lp.name, wireLogs),
    );
  }

  effort(): PartEffort {
    const sum = (pick: (lp: LogicalProcess) => number) =>
      this.#processes.reduce((total, lp) => total + pick(lp), 0);
    return {
      eventCount: sum((lp) => lp.queue.firedCount),
      recordCount: sum((lp) => lp.recordCount),
      edgeCount: [
        ...this.hosts.map(({ rootComplex }) => rootComplex),
        ...this.hcas.map(({ hca }) => hca),
        ...this.nics.map(({ nic }) => nic),
      ].reduce((total, { domain }) => total + domain.activeEdgeCount, 0),
      turnCount: this.#runner.turnCount,
    };
  }

  /** A host's physical memory in this thread: shared memory, whose later changes are visible in every thread that receives it. */
  memoryOf(node: number): SharedArrayBuffer {
    const { memory } = this.hosts[this.#indexOf(node)]!.host;
    memory.seeAll();
    return memory.buffer;
  }

  /** Physical address of a user address of a named process, or -1. */
  physicalAddress(node: number, process: string, address: number): number {
    const found = this.programs[this.#indexOf(node)]!.processNamed(process);
    if (found === undefined) throw new ConfigurationError('process', process, `a process of host ${node}`);
    return found.memory.space.translate(address);
  }

  /** The device's configuration space, as the device stores it. */
  readConfig32(node: number, offset: number): number {
    return this.#deviceOf(node).pcieFunction.space.read(offset, 4) >>> 0;
  }

  /** A little-endian dword of a BAR; a register with a read side effect triggers it. */
  readRegister32(node: number, bar: number, offset: number): number {
    const into = new DataView(new ArrayBuffer(8));
    const device = this.#deviceOf(node);
    device.barRead(bar, offset, 4, into, device.domain.cycle);
    return into.getUint32(0, true);
  }

  /** The connections that the drivers of the hosts in this thread have made, as their analysers saw them. */
  connections(): NodeConnections[] {
    return this.hosts.flatMap(({ analyser, node }) =>
      analyser === undefined ? [] : [{ node, ends: analyser.connections.ends }],
    );
  }

  /** Findings of the analysers of the hosts in this thread; their traces are complete up to now. */
  analyses(): Analysis[] {
    return this.hosts.flatMap(({ analyser, lp }) =>
      analyser === undefined ? [] : [analysisOf(analyser, lp.name, this.#analysis)],
    );
  }

  /** The machine has ended permanently: later machines may reuse its hosts' memory. */
  retire(): void {
    for (const { host } of this.hosts) host.memory.retire();
  }

  /** Ends the analysers' traces. */
  closeAnalysers(): void {
    for (const { analyser } of this.hosts) analyser?.close();
  }

  /** Makes the driver of a host remove its device, in a kernel thread. */
  removeDriver(node: number): void {
    this.hosts[this.#indexOf(node)]!.removeDriver();
  }

  #deviceOf(node: number): Hca | Nic {
    const hca = this.hcas.find((found) => found.node === node);
    if (hca !== undefined) return hca.hca;
    const nic = this.nics.find((found) => found.node === node);
    if (nic !== undefined) return nic.nic;
    throw new ConfigurationError('node', node, 'the number of a node of this machine');
  }

  #indexOf(node: number): number {
    const index = this.hosts.findIndex((host) => host.node === node);
    if (index < 0) throw new ConfigurationError('node', node, 'the number of a host of this machine');
    return index;
  }
}
