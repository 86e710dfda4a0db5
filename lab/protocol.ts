/** Messages between the page and its workers: plain data, by comlink. */

import type { ComparePath, FabricPattern } from '../experiments/workloads/index.ts';
import type { TopologyLayout } from '../explain/diagram/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';

export { type ComparePath, comparePaths, pathTitles } from '../experiments/workloads/index.ts';

/** A machine as the page describes it. */
export interface LabMachine {
  readonly profile: string;
  /** Parameters that differ from the profile, by path. */
  readonly set: ParameterValues;
  readonly seed: number;
}

export const labVerbs = ['write', 'send', 'read'] as const;
export type LabVerb = (typeof labVerbs)[number];

/** One message to be computed. */
export interface LabMessage {
  readonly verb: LabVerb;
  readonly sizeBytes: number;
  /** Path MTU; 0 selects the port's largest. */
  readonly mtuBytes: number;
  /** Messages up to this many bytes are sent inline. */
  readonly inlineBytes: number;
}

/** A part of a latency, by its cause. */
export interface LabTerm {
  readonly name: string;
  readonly ps: number;
}

/** A point of a curve over message sizes. */
interface SizePoint {
  readonly sizeBytes: number;
  readonly ps: number;
}

/** Answer of the closed form for a message, and for other sizes. */
export interface Estimate {
  readonly totalPs: number;
  readonly terms: readonly LabTerm[];
  readonly curve: readonly SizePoint[];
}

/** Measurements of simulated messages, one in flight. */
export interface SimulatedLatency {
  readonly sizeBytes: number;
  /** Mean without the first message, which finds all caches empty. */
  readonly meanPs: number;
  /** Latency of the first message. */
  readonly firstPs: number;
  /** Stages from the post to the departure of the completion: mean of each, by cause. */
  readonly stages: readonly LabTerm[];
  readonly configHash: string;
  readonly isBalanced: boolean;
}

/** Measurements of simulated messages, many in flight. */
export interface SimulatedRate {
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
  /** Payload rate that the cable could carry in such messages. */
  readonly cableBytesPerSecond: number;
  /** The bottleneck in words, and the next one. */
  readonly binds: string;
  readonly next: string;
  /** Parameters to change for a higher rate. */
  readonly turn: readonly string[];
}

/** A parameter with a slider. */
export interface LabParameter {
  readonly path: string;
  readonly unit: string;
  readonly doc: string;
  readonly source: string;
  /** Value in the profile. */
  readonly default: number | string | boolean;
}

/** A scenario that can be watched. */
export const scenarioNames = [
  'write',
  'write-immediate',
  'read',
  'send',
  'fetch-add',
  'compare-swap',
  'inline',
  'blueflame',
  'events',
  'rnr',
  'lost',
  'wrong-key',
  'page-fault',
] as const;
export type ScenarioName = (typeof scenarioNames)[number];

/** Networks on which an operation can be watched; on the first, the machine is as its parameters say. */
export const labNetworks = ['infiniband', 'roce-v2', 'iwarp'] as const;
export type LabNetwork = (typeof labNetworks)[number];

export interface OperationQuestion {
  readonly machine: LabMachine;
  readonly scenario: ScenarioName;
  /** Left out: the network of the machine. */
  readonly network?: LabNetwork;
  readonly sizeBytes: number;
  /** Path MTU; 0 selects the port's largest. */
  readonly mtuBytes: number;
  /** Whether earlier operations of its kind have filled the caches. */
  readonly isWarm: boolean;
}

/** Bytes by the fields of their layout, as text. */
export interface DecodedSection {
  /** Name of the layout. */
  readonly title: string;
  readonly fields: readonly string[];
}

/** An event on a host's bus, or a packet, with its bytes decoded. */
export interface DecodedEvent {
  /** Relative to the post. */
  readonly atPs: number;
  readonly summary: string;
  readonly sections: readonly DecodedSection[];
}

/** A record of the timeline, in words. Instants are relative to the post. */
export interface PictureRecord {
  readonly kind: string;
  /** Index into {@link OperationPicture.tracks}. */
  readonly track: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** Time when a message that crosses a link takes effect at the other end; absent if it is lost. */
  readonly arrivesPs?: number;
  /** Time when a write into host memory is in memory. */
  readonly inMemoryPs?: number;
  readonly label: string;
  readonly values: readonly (readonly [name: string, value: string | number])[];
  /** Indexes into {@link OperationPicture.decoded}. */
  readonly decoded: readonly number[];
}

export interface PictureTrack {
  readonly process: string;
  readonly group: string;
  readonly name: string;
}

/** A level over time. */
export interface PictureLevel {
  readonly process: string;
  readonly name: string;
  /** The value from each instant on; the first one at the beginning of the picture. */
  readonly steps: readonly (readonly [atPs: number, value: number])[];
}

export interface Milestone {
  readonly atPs: number;
  readonly text: string;
}

/** A part of the operation's latency, with its cause. */
interface PictureStage {
  readonly name: string;
  readonly fromPs: number;
  readonly toPs: number;
  readonly text: string;
}

/** One operation, with all concurrent events. Instants are relative to its post. */
export interface OperationPicture {
  readonly operation: string;
  /** Host that posted it. */
  readonly node: number;
  readonly payloadBytes: number;
  /** Latency from the post until the program has the completion. */
  readonly latencyPs: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** Status of the completion, by its verbs name. */
  readonly status: string;
  /** Other operations of both hosts that were under way at the time. */
  readonly others: number;
  /** Time of the post since power-on. */
  readonly postedPs: number;
  readonly stages: readonly PictureStage[];
  readonly milestones: readonly Milestone[];
  /** When the sender's CQE was in its memory, and when the last bytes were in their destination memory. */
  readonly cqePs: number | undefined;
  readonly lastBytesPs: number | undefined;
  readonly tracks: readonly PictureTrack[];
  /** Ordered by {@link PictureRecord.fromPs}. */
  readonly records: readonly PictureRecord[];
  readonly decoded: readonly DecodedEvent[];
  readonly levels: readonly PictureLevel[];
  /** Cache look-ups of both devices during the operation. */
  readonly hits: number;
  readonly misses: number;
  readonly configHash: string;
  readonly isBalanced: boolean;
}

/** Activity of blocks and packets in flight over time: the input of the block diagram. */
export type MachinePicture = Pick<OperationPicture, 'fromPs' | 'toPs' | 'tracks' | 'records'>;

/** The compared figures of two operations. */
export type OperationOutcome = Pick<OperationPicture, 'latencyPs' | 'hits' | 'misses'>;

/** One way to move the same bytes from host 0 to host 1. */
export interface TransferQuestion {
  readonly machine: LabMachine;
  readonly path: ComparePath;
  readonly sizeBytes: number;
}

/** A period of one kind of work on a core. Instants are relative to the start of the transfer. */
export interface CoreWork {
  readonly core: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** The use of its cycles, by its name in the report. */
  readonly cause: string;
  readonly cycles: number;
}

/** The work of a host for a transfer. */
export interface TransferHost {
  readonly isActive: boolean;
  readonly work: readonly CoreWork[];
  /** Sum of its cores' ledgers, by cause, from the start until both sides have ended. */
  readonly cycles: Readonly<Record<string, number>>;
  readonly cyclesTotal: number;
  readonly systemCalls: number;
  readonly interrupts: number;
  readonly contextSwitches: number;
  readonly copiedBytes: number;
}

/** One message by one way, the second of its kind. */
export interface TransferPicture {
  readonly path: ComparePath;
  readonly title: string;
  /** Time until the receiver has the bytes; for a one-sided operation, until the initiator has its completion. */
  readonly latencyPs: number;
  readonly hosts: readonly [TransferHost, TransferHost];
  /** Messages on the cable in both directions: packets or frames. */
  readonly cable: readonly { readonly fromPs: number; readonly toPs: number; readonly text: string }[];
  readonly isEqual: boolean;
  readonly isBalanced: boolean;
}

/** Traffic that can be watched on a fabric. */
export const fabricTraffic = [
  'incast',
  'victim',
  'all-to-all',
  'permutation',
  'ring',
  'outcast',
] as const satisfies readonly FabricPattern[];

/** Topologies in the menu; the address may name any other ready-made one. */
export const fabricTopologies = [
  'star:8',
  'star:16',
  'dumbbell:8',
  'ring:6',
  'leaf-spine:2x4:16',
  'fat-tree:4',
  'mesh:4',
] as const;

/** A fabric and its traffic. */
export interface FabricChoice {
  /** As of `hca fabric --topology`. */
  readonly topology: string;
  readonly pattern: (typeof fabricTraffic)[number];
  /** Bytes of a message, and messages of each flow. */
  readonly sizeBytes: number;
  readonly messages: number;
}

export interface FabricQuestion extends FabricChoice {
  readonly machine: LabMachine;
  readonly network: LabNetwork;
}

/** Times of an activity, ascending, which do not touch: from and to in turn. */
export type Spans = readonly number[];

/** One direction of a cable: from the port of a node to that of another. */
export interface FabricDirection {
  readonly from: FabricPort;
  readonly to: FabricPort;
  /** Packets and frames are on their way out of the port. */
  readonly sends: Spans;
  /** Something waits in a switch for credits of the far port, or for the end of its pause. */
  readonly waits: Spans;
}

export interface FabricPort {
  readonly node: number;
  readonly port: number;
}

/** Bytes in a switch at one port: in the buffer of the input on InfiniBand, in the queues of the output on Ethernet. */
export interface FabricQueue extends FabricPort, PictureLevel {
  readonly mostBytes: number;
}

/** Traffic of a fabric as it happened. Instants are relative to its start. */
export interface FabricPicture {
  readonly layout: TopologyLayout;
  readonly toPs: number;
  readonly directions: readonly FabricDirection[];
  readonly queues: readonly FabricQueue[];
  /** Bytes that fill the gauge of a queue: an input's buffer on InfiniBand, the fullest queue on Ethernet. */
  readonly gaugeBytes: number;
  /** Packets that switches lost. */
  readonly losses: readonly (FabricPort & { readonly atPs: number })[];
  readonly flows: readonly {
    readonly from: number;
    readonly to: number;
    readonly bytesPerSecond: number;
    readonly medianPs: number;
    readonly p99Ps: number;
  }[];
  readonly durationPs: number;
  readonly bytesPerSecond: number;
  /** Payload that the slowest cable of a host could carry in such messages. */
  readonly cableBytesPerSecond: number;
  /** Jain's index: 1 if all flows have the same rate. */
  readonly fairness: number;
  readonly isEqual: boolean;
  readonly isBalanced: boolean;
}

/** The worker of the closed form: it answers immediately, even during a simulation. */
export interface LabForm {
  /** Names of the profiles, with their descriptions. */
  profiles(): { readonly name: string; readonly doc: string }[];
  /** @throws if the profile or a path does not exist */
  parameters(profile: string, paths: readonly string[]): LabParameter[];
  estimate(machine: LabMachine, message: LabMessage): Estimate;
}

/** The worker that simulates. */
export interface LabModel {
  latency(machine: LabMachine, message: LabMessage): Promise<SimulatedLatency>;
  rate(machine: LabMachine, message: LabMessage, qpCount: number): Promise<SimulatedRate>;
  operation(question: OperationQuestion): Promise<OperationPicture>;
  outcome(question: OperationQuestion): Promise<OperationOutcome>;
  transfer(question: TransferQuestion): Promise<TransferPicture>;
  fabric(question: FabricQuestion): Promise<FabricPicture>;
}

/** A program to run, on a machine of its own. */
export interface ProgramOrder {
  /** TypeScript: a module that exports `host0` and `host1`, or `main`. */
  readonly text: string;
  readonly machine: LabMachine;
  /** Faults in the form of `hca --fault`, separated by blanks; may be empty. */
  readonly faults: readonly string[];
  /** The operation that {@link LabProgram.picture} will show; if omitted, less is recorded. */
  readonly watched?: WatchedTime;
  /** The instant that {@link LabProgram.moment} will show, instead of an operation. */
  readonly watchedPs?: number;
  /** Lines with a breakpoint; omitted: no breakpoints. */
  readonly breakpoints?: readonly number[];
  /** Place where the program was stopped before it continued: earlier arrivals at a breakpoint do not count. */
  readonly stood?: StandingPlace;
}

/** A line that a host's program has reached: its host, and the number of lines that this host had reached before. */
export interface ReachedName {
  readonly node: number;
  readonly ordinal: number;
}

/** The instant at which a program has stopped, since power-on; and the line, if it has stopped at a breakpoint. */
export interface StandingPlace {
  readonly atPs: number;
  readonly reached: ReachedName | undefined;
}

/** The arrival of a host's program at a line: the line runs next. */
export interface Arrival extends ReachedName {
  readonly line: number;
  /** Since power-on. */
  readonly atPs: number;
}

/** An operation of a program: its host, and its number among the sends of that host. */
export interface OperationName {
  readonly node: number;
  readonly ordinal: number;
}

/** Time span of the operation, since power-on. */
export interface WatchedTime extends OperationName {
  readonly fromPs: number;
  readonly toPs: number;
}

/** An operation that a program has posted. Instants are since power-on. */
export interface PostedOperation extends OperationName {
  /** Line of the post. */
  readonly line: number | undefined;
  readonly operation: string;
  readonly payloadBytes: number;
  readonly postedPs: number;
  /**
   * Latency from the post until the program has the completion (of an unsignalled request: until the acknowledgement);
   * undefined while it is in flight.
   */
  readonly latencyPs: number | undefined;
  readonly hasFailed: boolean;
  /** Whether the device has begun it, so that a picture can be drawn; false for a request that was flushed before. */
  readonly isOnDevice: boolean;
}

/** A remark about a line of the program. */
export interface ProgramRemark {
  /** Line number from 1; undefined if the line is unknown. */
  readonly line: number | undefined;
  readonly severity: 'error' | 'warning';
  readonly text: string;
}

interface ProgramLogLine {
  readonly node: number;
  readonly atPs: number;
  readonly text: string;
}

/** Progress of a program. */
export interface ProgramProgress {
  readonly atPs: number;
  readonly hasEnded: boolean;
  readonly log: readonly ProgramLogLine[];
  /** Return values of the programs, as JSON, by host. */
  readonly results: readonly (string | undefined)[];
  readonly remarks: readonly ProgramRemark[];
  /** The present line of each host's program: its last call of the library, or the breakpoint's line at the host that has stopped there. */
  readonly lines: readonly (number | undefined)[];
  /** System calls and handled interrupts of each host so far. */
  readonly hosts: readonly { readonly systemCalls: number; readonly interrupts: number }[];
  /** Completed operations, by name. */
  readonly operations: Readonly<Record<string, number>>;
  /** The first arrival at a breakpoint so far, after {@link ProgramOrder.stood}. */
  readonly arrival: Arrival | undefined;
}

/** The worker that runs programs; the page terminates it and starts another if a program does not return. */
export interface LabProgram {
  /**
   * Creates the machine and loads the program without running it.
   * @returns the error in the text, if any
   */
  load(order: ProgramOrder): Promise<readonly ProgramRemark[]>;
  /** Runs for this much simulated time, or until all programs have ended. */
  runFor(ps: number): Promise<ProgramProgress>;
  /** Operations that the program has posted so far, in the order of their posts. */
  operations(): Promise<readonly PostedOperation[]>;
  /**
   * Draws the watched operation.
   * @throws if it has not ended
   */
  picture(): Promise<OperationPicture>;
  /** Draws the machine around the watched instant. */
  moment(): Promise<MachinePicture>;
}

/** Size of a terminal of the page. */
export const linuxRows = 24;
export const linuxColumns = 80;

/** State of the snapshot at the lab's server (guests/linux/booted/linux-offer.ts). */
export interface LinuxSnapshotState {
  readonly phase: 'absent' | 'making' | 'ready' | 'failed';
  /** The command that makes it. */
  readonly command: string;
  /** Lines that the command has printed so far. */
  readonly notices: readonly string[];
}

/** Text typed into a host's console, and the number of steps before it. */
export interface LinuxInput {
  readonly step: number;
  readonly host: number;
  readonly text: string;
}

export interface LinuxOrder {
  readonly hosts: 1 | 2;
  readonly seed: number;
  /** Inputs of an earlier run, to come to the same instants again. */
  readonly inputs: readonly LinuxInput[];
  /** Pauses after this step; omitted: runs on. */
  readonly stopAtStep?: number;
}

/** Kinds of events up to which a paused machine can continue: categories of the bus analyser. */
export const linuxEvents = ['commands', 'doorbells', 'dma', 'events', 'interrupts'] as const;
export type LinuxEvent = (typeof linuxEvents)[number];

/** `starting`: no shell is open yet. */
export type LinuxPhase = 'starting' | 'running' | 'paused';

/** News since the last progress, and the place of the machine. */
export interface LinuxProgress {
  readonly phase: LinuxPhase;
  /** Since power-on. */
  readonly atPs: number;
  readonly step: number;
  /** New text of each host's console: a character for each byte. */
  readonly said: readonly string[];
  /** Commands of the drivers that have ended since, in the words of the bus analyser. */
  readonly commands: readonly string[];
  /** Events so far, by their kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Instructions of each host so far. */
  readonly instructions: readonly number[];
}

/** The latest records of the machine, until its present instant, with their bytes decoded. */
export type LinuxMoment = MachinePicture & Pick<OperationPicture, 'decoded'>;

/** The worker that runs a stock Linux. */
export interface LabLinux {
  /** Undefined if the page was not served by `hca lab`. */
  snapshotState(): Promise<LinuxSnapshotState | undefined>;
  /** Lets the server begin to make the snapshot. */
  make(): Promise<void>;
  /**
   * Stops the running machine, and runs another one until it ends.
   * @param onProgress is called several times a second
   * @throws if the guest ends or makes no progress
   */
  run(order: LinuxOrder, onProgress: (progress: LinuxProgress) => void): Promise<void>;
  type(host: number, text: string): void;
  pause(): void;
  /** @param event the Linux pauses after the next event of this kind; omitted: when the reader asks for it */
  resume(event?: LinuxEvent): void;
  moment(): LinuxMoment | undefined;
  /** All inputs so far. */
  inputs(): readonly LinuxInput[];
  /** The last step before this one in which an event happened; undefined if it is no longer known. */
  eventStepBefore(step: number): number | undefined;
  /** The report as of now, as `hca linux --report` writes it. */
  report(): string;
}
