/**
 * Types of a fault's fields, and their parsers, shared by options and files.
 *
 *     nth       5 · every · 3-7 · 3-            indexes of the counted events, from 1
 *     time      250ns · 10us · 1.5ms · 2s       simulated time; a bare number is picoseconds
 *     opcode    SW2HW_CQ · 0x016 · any          a command of the interface sheet, by name or number
 *     status    BAD_RES_STATE · 0x09 · none     status of a command; none: it never completes
 *     psn       50 · 50-150 · +7 · +7-9         PSNs of packets: absolute, or relative to the connection's first
 *     chance    10% · 0.1                       probability
 *
 * A parser returns undefined for invalid input; its caller reports the place.
 */

import { CommandStatus, commandNameOf, commands } from '../../abi/index.ts';
import { psPerMs, psPerNs, psPerSecond, psPerUs } from '../../base/index.ts';
import { delayPsMax } from '../../sim/index.ts';
import { Opcode, PSN_MASK, type PsnRange } from '../../wire/index.ts';

/** Indexes of the affected events, from 1, both included. */
export interface Nth {
  readonly first: number;
  readonly last: number;
}

export const isNth = ({ first, last }: Nth, count: number): boolean => count >= first && count <= last;

/** Value that matches any command, for an opcode. */
export const ANY_COMMAND = -1;
/** Value that matches any load or store of software to the device, for an event. */
export const ANY_ACCESS = -2;
/** Value for a command that never completes, for a status. */
export const NO_STATUS = -1;

export interface Field<Value> {
  /** The accepted values, in words. */
  readonly range: string;
  readonly doc: string;
  readonly isRequired: boolean;
  /** Its value if it is omitted. */
  readonly preset: Value;
  /** Parses a word of an option or a value of a file. */
  read(value: string | number): Value | undefined;
  /** Formats the value as a word that parses to it. */
  write(value: unknown): string;
}

/** Fields of a fault. */
export type Fields = Readonly<Record<string, Field<unknown>>>;

export type ValuesOf<Table extends Fields> = {
  readonly [Name in keyof Table]: Table[Name] extends Field<infer Value> ? Value : never;
};

/** Makes the field optional. */
export function optional<Value>(field: Field<Value>): Field<Value | undefined> {
  return { ...field, isRequired: false, preset: undefined };
}

/** One of several words. */
export function choice<const Word extends string>(words: readonly Word[], doc: string): Field<Word> {
  return {
    range: words.length === 1 ? words[0]! : `one of ${words.join(', ')}`,
    doc,
    isRequired: true,
    preset: words[0]!,
    read: (value) => words.find((word) => word.toLowerCase() === String(value).toLowerCase()),
    write: String,
  };
}

/** An integer, decimal or 0x. */
export function integer(least: number, most: number, doc: string): Field<number> {
  return {
    range: `an integer from ${least} to ${most}`,
    doc,
    isRequired: true,
    preset: least,
    read: (value) => {
      const number = numberOf(value);
      return number !== undefined && number >= least && number <= most ? number : undefined;
    },
    write: String,
  };
}

/** Indexes of events; default: the first. */
export function nth(doc: string): Field<Nth> {
  return {
    range: 'a number from 1, every, or a range as 3-7 or 3-',
    doc,
    isRequired: false,
    preset: { first: 1, last: 1 },
    read: (value) => nthOf(String(value)),
    write: (value) => nthText(value as Nth),
  };
}

/** PSNs of packets. */
export function psns(doc: string): Field<PsnRange> {
  return {
    range: `a PSN up to ${PSN_MASK} or a range as 50-150; with + ahead of it counted from the first PSN, as +7 or +7-9`,
    doc,
    isRequired: true,
    preset: { first: 0, last: 0, isRelative: false },
    read: (value) => psnsOf(String(value)),
    write: (value) => psnsText(value as PsnRange),
  };
}

/** A probability; the parsed value is a fraction. */
export function chance(doc: string): Field<number> {
  return {
    range: 'a share as 10% or 0.1, above 0 and at most 100%',
    doc,
    isRequired: true,
    preset: 1,
    read: (value) => chanceOf(String(value)),
    write: (value) => `${Number(((value as number) * 100).toPrecision(12))}%`,
  };
}

/** The opcode of a packet. */
export function packetOpcode(doc: string): Field<number> {
  return {
    range: 'an opcode by name, such as RC_RDMA_WRITE_ONLY, or its number up to 0xff',
    doc,
    isRequired: true,
    preset: 0,
    read: (value) => {
      const word = String(value).toUpperCase();
      return Object.entries(Opcode).find(([name]) => name === word)?.[1] ?? numberUpTo(value, 0xff);
    },
    write: (value) =>
      Object.entries(Opcode).find(([, opcode]) => opcode === value)?.[0] ??
      `0x${(value as number).toString(16)}`,
  };
}

/** Simulated time; the parsed value is in picoseconds. */
export function time(doc: string): Field<number> {
  return {
    range: 'a time such as 250ns, 10us, 1.5ms or 2s (a bare number is picoseconds), up to 8998s',
    doc,
    isRequired: true,
    preset: 0,
    read: (value) => timeOf(String(value)),
    write: (value) => timeText(value as number),
  };
}

/** A command, or any. */
export function command(doc: string): Field<number> {
  return {
    range: `a command (${Object.keys(commands).join(', ')}), its number up to 0xfff, or any`,
    doc,
    isRequired: true,
    preset: ANY_COMMAND,
    read: commandOf,
    write: (value) => commandText(value as number),
  };
}

/** An access of software to the device. */
export function action(doc: string): Field<number> {
  const { range, ...rest } = command(doc);
  return {
    ...rest,
    range: `${range}; or access for any load or store`,
    read: (value) => (String(value).toLowerCase() === 'access' ? ANY_ACCESS : commandOf(value)),
  };
}

/** Status with which a command ends. */
export function status(doc: string): Field<number> {
  return {
    range: `none, or a status (${Object.keys(CommandStatus).join(', ')}), or its number up to 0xff`,
    doc,
    isRequired: true,
    preset: CommandStatus.INTERNAL_ERR,
    read: (value) => {
      const word = String(value).toUpperCase();
      if (word === 'NONE') return NO_STATUS;
      const named = Object.entries(CommandStatus).find(([name]) => name === word);
      return named?.[1] ?? numberUpTo(value, 0xff);
    },
    write: (value) => statusText(value as number),
  };
}

function nthText({ first, last }: Nth): string {
  if (first === last) return `${first}`;
  if (last !== Number.POSITIVE_INFINITY) return `${first}-${last}`;
  return first === 1 ? 'every' : `${first}-`;
}

/** Returns the time in the largest unit in which it is a whole number. */
function timeText(ps: number): string {
  const [unit, size] = wholeUnits.find(([, size]) => ps % size === 0)!;
  return `${ps / size}${unit}`;
}

function commandText(opcode: number): string {
  if (opcode === ANY_COMMAND) return 'any';
  if (opcode === ANY_ACCESS) return 'access';
  return commandNameOf(opcode) ?? `0x${opcode.toString(16)}`;
}

function statusText(status: number): string {
  if (status === NO_STATUS) return 'none';
  const named = Object.entries(CommandStatus).find(([, value]) => value === status);
  return named?.[0] ?? `0x${status.toString(16)}`;
}

function commandOf(value: string | number): number | undefined {
  const word = String(value).toUpperCase();
  if (word === 'ANY') return ANY_COMMAND;
  const named = Object.entries(commands).find(([name]) => name.toUpperCase() === word);
  return named?.[1].opcode ?? numberUpTo(value, 0xfff);
}

function numberUpTo(value: string | number, most: number): number | undefined {
  const number = numberOf(value);
  return number !== undefined && number <= most ? number : undefined;
}

function numberOf(value: string | number): number | undefined {
  if (typeof value === 'string' && !/^(0x[0-9a-f]+|\d+)$/i.test(value)) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function nthOf(text: string): Nth | undefined {
  if (text.toLowerCase() === 'every') return { first: 1, last: Number.POSITIVE_INFINITY };
  const match = /^(\d{1,15})(-(\d{1,15})?)?$/.exec(text);
  if (match === null) return undefined;
  const first = Number(match[1]);
  const open = match[2] === undefined ? first : Number.POSITIVE_INFINITY;
  const last = match[3] === undefined ? open : Number(match[3]);
  return first >= 1 && last >= first ? { first, last } : undefined;
}

function psnsOf(text: string): PsnRange | undefined {
  const match = /^(\+?)(\d{1,8})(?:-(\d{1,8}))?$/.exec(text);
  if (match === null) return undefined;
  const first = Number(match[2]);
  const last = Number(match[3] ?? first);
  return first <= last && last <= PSN_MASK ? { first, last, isRelative: match[1] === '+' } : undefined;
}

const psnsText = ({ first, last, isRelative }: PsnRange): string =>
  `${isRelative ? '+' : ''}${first}${last === first ? '' : `-${last}`}`;

function chanceOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text);
  if (match === null) return undefined;
  const probability = Number(match[1]) / (match[2] === '%' ? 100 : 1);
  return probability > 0 && probability <= 1 ? probability : undefined;
}

const timeUnits: Readonly<Record<string, number>> = {
  '': 1,
  ps: 1,
  ns: psPerNs,
  us: psPerUs,
  µs: psPerUs,
  ms: psPerMs,
  s: psPerSecond,
};

const wholeUnits = [
  ['s', psPerSecond],
  ['ms', psPerMs],
  ['us', psPerUs],
  ['ns', psPerNs],
  ['ps', 1],
] as const;

function timeOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(|ps|ns|us|µs|ms|s)$/i.exec(text);
  if (match === null) return undefined;
  const ps = Math.round(Number(match[1]) * timeUnits[match[2]!.toLowerCase()]!);
  return ps <= delayPsMax ? ps : undefined;
}
