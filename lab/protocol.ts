/** What the page and its workers say to each other: plain data, by comlink. */
import type { ParameterValues } from '../system/machine/profile/index.ts';

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

/** The worker that computes. */
export interface LabModel {
  /** Names of the profiles, with what they stand for. */
  profiles(): { readonly name: string; readonly doc: string }[];
  /** @throws when the profile or a path does not exist */
  parameters(profile: string, paths: readonly string[]): LabParameter[];
  estimate(machine: LabMachine, message: LabMessage): Estimate;
  latency(machine: LabMachine, message: LabMessage): Promise<SimulatedLatency>;
  rate(machine: LabMachine, message: LabMessage, qpCount: number): Promise<SimulatedRate>;
}

/** A program that is to be run, on a machine of its own. */
export interface ProgramOrder {
  /** TypeScript: a module that exports `host0` and `host1`, or `main`. */
  readonly text: string;
  readonly machine: LabMachine;
  /** Faults, as `hca --fault` takes them, separated by blanks; may be empty. */
  readonly faults: readonly string[];
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
  /** The line that each host's program is at: its last call of the library. */
  readonly lines: readonly (number | undefined)[];
  /** System calls and handled interrupts of each host so far. */
  readonly hosts: readonly { readonly systemCalls: number; readonly interrupts: number }[];
  /** Operations that have completed, by their name. */
  readonly operations: Readonly<Record<string, number>>;
}

/** The worker in which programs run: ended and started anew when a program does not come back. */
export interface LabProgram {
  /** Makes the machine and loads the program; nothing has run. @returns what is wrong with the text */
  load(order: ProgramOrder): Promise<readonly ProgramRemark[]>;
  /** Runs for so much simulated time, or until all have ended. */
  runFor(ps: number): Promise<ProgramProgress>;
}
