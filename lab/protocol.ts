/** What the page and its workers say to each other: plain data, by comlink. */

import type { ComparePath } from '../experiments/workloads/index.ts';
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

/** One message that is asked about. */
export interface LabMessage {
  readonly verb: LabVerb;
  readonly sizeBytes: number;
  /** Path MTU; 0 is the port's largest. */
  readonly mtuBytes: number;
  /** Messages of at most so many bytes go inline. */
  readonly inlineBytes: number;
}

/** A part of a latency, by what is waited for or worked on. */
export interface LabTerm {
  readonly name: string;
  readonly ps: number;
}

/** A point of a curve over message sizes. */
interface SizePoint {
  readonly sizeBytes: number;
  readonly ps: number;
}

/** What the closed form says of a message, and of other sizes. */
export interface Estimate {
  readonly totalPs: number;
  readonly terms: readonly LabTerm[];
  readonly curve: readonly SizePoint[];
}

/** What a simulation of such messages measured, one in flight. */
export interface SimulatedLatency {
  readonly sizeBytes: number;
  /** Mean without the first message, which finds nothing on chip. */
  readonly meanPs: number;
  /** Of the first message. */
  readonly firstPs: number;
  /** From the post to the departure of the completion: mean of each stage, by what was waited for. */
  readonly stages: readonly LabTerm[];
  readonly configHash: string;
  readonly isBalanced: boolean;
}

/** What a simulation of many messages in flight measured. */
export interface SimulatedRate {
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
  /** Payload that the cable could carry in such messages. */
  readonly cableBytesPerSecond: number;
  /** What binds, in words, and what would bind next. */
  readonly binds: string;
  readonly next: string;
  /** What to turn for a higher rate. */
  readonly turn: readonly string[];
}

/** A parameter that the page has a slider for. */
export interface LabParameter {
  readonly path: string;
  readonly unit: string;
  readonly doc: string;
  readonly source: string;
  /** Of the profile. */
  readonly default: number | string | boolean;
}

/** What can be watched as it happens. */
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

export interface OperationQuestion {
  readonly machine: LabMachine;
  readonly scenario: ScenarioName;
  readonly sizeBytes: number;
  /** Path MTU; 0 is the port's largest. */
  readonly mtuBytes: number;
  /** Whether others of its kind went before it, so that caches have what it needs. */
  readonly isWarm: boolean;
}

/** Bytes by the fields of their layout, as text. */
export interface DecodedSection {
  /** Of the layout. */
  readonly title: string;
  readonly fields: readonly string[];
}

/** Something that was seen on the bus of a host, or in a packet, with its bytes decoded. */
export interface DecodedEvent {
  /** After the post. */
  readonly atPs: number;
  readonly summary: string;
  readonly sections: readonly DecodedSection[];
}

/** A record of the timeline, in words. Instants are after the post. */
export interface PictureRecord {
  readonly kind: string;
  /** Place in {@link OperationPicture.tracks}. */
  readonly track: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** Of what crosses a link: when it takes effect at the other end, never for what is lost. */
  readonly arrivesPs?: number;
  /** Of a write into host memory: when the memory has it. */
  readonly inMemoryPs?: number;
  readonly label: string;
  readonly values: readonly (readonly [name: string, value: string | number])[];
  /** Places in {@link OperationPicture.decoded}. */
  readonly decoded: readonly number[];
}

export interface PictureTrack {
  readonly process: string;
  readonly group: string;
  readonly name: string;
}

/** How full something is, from instant to instant. */
export interface PictureLevel {
  readonly process: string;
  readonly name: string;
  /** The value from each instant on, the first at the begin of the picture. */
  readonly steps: readonly (readonly [atPs: number, value: number])[];
}

export interface Milestone {
  readonly atPs: number;
  readonly text: string;
}

/** A part of the operation's latency, with the reason for it. */
interface PictureStage {
  readonly name: string;
  readonly fromPs: number;
  readonly toPs: number;
  readonly text: string;
}

/** One operation, with everything that happened meanwhile. Instants are after its post. */
export interface OperationPicture {
  readonly operation: string;
  /** Host that posted it. */
  readonly node: number;
  readonly payloadBytes: number;
  /** From the post to the completion in the program's hands. */
  readonly latencyPs: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** Of the completion, as verbs name it. */
  readonly status: string;
  /** Other operations of both hosts that were under way meanwhile. */
  readonly others: number;
  /** Since power-on, of the post. */
  readonly postedPs: number;
  readonly stages: readonly PictureStage[];
  readonly milestones: readonly Milestone[];
  /** When the sender's CQE was in its memory, and when the last bytes were in the memory that they were for. */
  readonly cqePs: number | undefined;
  readonly lastBytesPs: number | undefined;
  readonly tracks: readonly PictureTrack[];
  /** By {@link PictureRecord.fromPs}. */
  readonly records: readonly PictureRecord[];
  readonly decoded: readonly DecodedEvent[];
  readonly levels: readonly PictureLevel[];
  /** Look-ups of the device's caches meanwhile, of both devices. */
  readonly hits: number;
  readonly misses: number;
  readonly configHash: string;
  readonly isBalanced: boolean;
}

/** Activity of blocks and packets in flight, from instant to instant: the input of the block diagram. */
export type MachinePicture = Pick<OperationPicture, 'fromPs' | 'toPs' | 'tracks' | 'records'>;

/** What is compared of two operations. */
export type OperationOutcome = Pick<OperationPicture, 'latencyPs' | 'hits' | 'misses'>;

/** One way of the same bytes from host 0 to host 1. */
export interface TransferQuestion {
  readonly machine: LabMachine;
  readonly path: ComparePath;
  readonly sizeBytes: number;
}

/** A core at work, until something else is to be done. Instants are after the start of the transfer. */
export interface CoreWork {
  readonly core: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** What its cycles go to, as the report names it. */
  readonly cause: string;
  readonly cycles: number;
}

/** What a host did for a transfer. */
export interface TransferHost {
  readonly isActive: boolean;
  readonly work: readonly CoreWork[];
  /** Of the ledgers of its cores, by cause, from the start until both sides had ended. */
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
  /** Until the receiver has the bytes; of a one-sided operation, until the initiator has its completion. */
  readonly latencyPs: number;
  readonly hosts: readonly [TransferHost, TransferHost];
  /** What is on the cable, either way: packets or frames. */
  readonly cable: readonly { readonly fromPs: number; readonly toPs: number; readonly text: string }[];
  readonly isEqual: boolean;
  readonly isBalanced: boolean;
}

/** The worker of the closed form: it answers at once, whatever is being simulated. */
export interface LabForm {
  /** Names of the profiles, with what they stand for. */
  profiles(): { readonly name: string; readonly doc: string }[];
  /** @throws when the profile or a path does not exist */
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
}

/** A program that is to be run, on a machine of its own. */
export interface ProgramOrder {
  /** TypeScript: a module that exports `host0` and `host1`, or `main`. */
  readonly text: string;
  readonly machine: LabMachine;
  /** Faults, as `hca --fault` takes them, separated by blanks; may be empty. */
  readonly faults: readonly string[];
  /** The operation that {@link LabProgram.picture} will show; if omitted, less is recorded. */
  readonly watched?: WatchedTime;
  /** The instant that {@link LabProgram.moment} will show, instead of an operation. */
  readonly watchedPs?: number;
  /** Lines with a breakpoint; omitted: no breakpoints. */
  readonly breakpoints?: readonly number[];
  /** Where the program had stopped when it was continued: earlier arrivals at a breakpoint do not count. */
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

/** The time that an operation took, since power-on. */
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
  /** From the post to the completion in the program's hands, or, unsignalled, to the acknowledgement; undefined while under way. */
  readonly latencyPs: number | undefined;
  readonly hasFailed: boolean;
  /** Whether the device has begun it, so that a picture can be drawn: not of a request that was flushed before. */
  readonly isOnDevice: boolean;
}

/** A remark on a program, at the line that it is about. */
export interface ProgramRemark {
  /** From 1; undefined when no line can be named. */
  readonly line: number | undefined;
  readonly severity: 'error' | 'warning';
  readonly text: string;
}

interface ProgramLogLine {
  readonly node: number;
  readonly atPs: number;
  readonly text: string;
}

/** How far a program has come. */
export interface ProgramProgress {
  readonly atPs: number;
  readonly hasEnded: boolean;
  readonly log: readonly ProgramLogLine[];
  /** What the programs returned, as JSON, by host. */
  readonly results: readonly (string | undefined)[];
  readonly remarks: readonly ProgramRemark[];
  /** The present line of each host's program: its last call of the library, or the breakpoint's line at the host that has stopped there. */
  readonly lines: readonly (number | undefined)[];
  /** System calls and handled interrupts of each host so far. */
  readonly hosts: readonly { readonly systemCalls: number; readonly interrupts: number }[];
  /** Operations that have completed, by their name. */
  readonly operations: Readonly<Record<string, number>>;
  /** The first arrival at a breakpoint so far, after {@link ProgramOrder.stood}. */
  readonly arrival: Arrival | undefined;
}

/** The worker in which programs run: ended and started anew when a program does not come back. */
export interface LabProgram {
  /** Makes the machine and loads the program; nothing has run. @returns what is wrong with the text */
  load(order: ProgramOrder): Promise<readonly ProgramRemark[]>;
  /** Runs for so much simulated time, or until all have ended. */
  runFor(ps: number): Promise<ProgramProgress>;
  /** Operations that the program has posted so far, by the instant of their posts. */
  operations(): Promise<readonly PostedOperation[]>;
  /** Draws the operation that was watched. @throws when it has not ended */
  picture(): Promise<OperationPicture>;
  /** Draws the machine around the instant that was watched. */
  moment(): Promise<MachinePicture>;
}
