/**
 * Follows commands through stores to and loads from the HCR. A command completed by event ends with its EQE.
 *
 *     stores of dwords 0…5, then 6 with GO ─► posted ─► load of dword 6 without GO      ─► finished (polled)
 *                                                  └──► EQE of type CMD with its token  ─► finished (by event)
 *
 * A polled command with an immediate answer is finished once the driver has also read the answer, or has continued
 * without reading it. Source: interface sheet 2.2, 3.1.
 */
import {
  type CommandName,
  type CommandRow,
  commandNameOf,
  commands,
  hcr,
  hcrGoOffset,
  mailboxBytes,
} from '../../abi/index.ts';
import { joinWords, swap32, viewOf } from '../../base/index.ts';
import type { MemoryReader } from '../host-memory-reader.ts';

/** A command as it was seen. */
export interface ObservedCommand {
  readonly opcode: number;
  /** Undefined for an opcode that is not in the table. */
  readonly name: CommandName | undefined;
  readonly row: CommandRow | undefined;
  readonly inputModifier: number;
  readonly opcodeModifier: number;
  readonly token: number;
  readonly isByEvent: boolean;
  readonly toggle: number;
  readonly inParam: number;
  readonly outParam: number;
  /** The seven dwords as posted. */
  readonly registers: Uint8Array;
  /** The mailbox at posting; undefined if the command has none or it lies outside memory. */
  readonly inBox: Uint8Array | undefined;
  postedPs: number;
  finishedPs: number;
  /** Time of completion; -1 until the command has finished. */
  status: number;
  immediate: bigint;
  outBox: Uint8Array | undefined;
}

export interface CommandListener {
  /** @param before the command that was unfinished when this one was posted, if any */
  commandPosted(command: ObservedCommand, before: ObservedCommand | undefined): void;
  commandFinished(command: ObservedCommand): void;
}

const { fields } = hcr;
const outHigh = fields.outParam.wordOffset;
const outLow = outHigh + 4;
const takesBox = (form: CommandRow['input'] | undefined): boolean =>
  form === 'box' || form === 'optionalBox' || form === 'undocumented';

export class CommandRegister {
  readonly #memory: MemoryReader;
  readonly #listener: CommandListener;
  readonly #registers = new Uint8Array(hcr.sizeBytes);
  readonly #view = viewOf(this.#registers);
  /** The command in the register, until the register is seen to be free. */
  #current: ObservedCommand | undefined;
  /** True if the status was read; the immediate answer may still be read. */
  #isAnswered = false;
  #wordsRead = 0;
  readonly #byToken = new Map<number, ObservedCommand>();

  constructor(memory: MemoryReader, listener: CommandListener) {
    this.#memory = memory;
    this.#listener = listener;
  }

  /** Whether a posted command has not been answered. */
  get isWaiting(): boolean {
    return this.#byToken.size > 0 || (this.#current !== undefined && !this.#isAnswered);
  }

  /** Handles a store to the HCR; `bytes` are in memory order. */
  store(offset: number, bytes: Uint8Array, nowPs: number): void {
    if (this.#isAnswered) this.#finishPolled();
    this.#registers.set(bytes.subarray(0, hcr.sizeBytes - offset), offset);
    const coversGo = offset <= hcrGoOffset && offset + bytes.length > hcrGoOffset;
    if (coversGo && fields.go.get(this.#view, 0) === 1) this.#post(nowPs);
  }

  /** Starts a new epoch: subtracts `ps` from every stored time. */
  rebase(ps: number): void {
    const current = this.#current === undefined ? [] : [this.#current];
    for (const command of new Set([...current, ...this.#byToken.values()])) {
      command.postedPs -= ps;
      command.finishedPs -= ps;
    }
  }

  /** Handles a load of the HCR that returned a little-endian value. */
  load(offset: number, value: number, nowPs: number): void {
    const current = this.#current;
    if (current === undefined) return;
    const word = swap32(value);
    if (offset === hcrGoOffset && !this.#isAnswered) {
      const isBusy = (word >>> 23) & 1;
      if (isBusy === 1) return;
      if (current.isByEvent) {
        this.#current = undefined;
        return;
      }
      current.status = word >>> 24;
      current.finishedPs = nowPs;
      this.#isAnswered = true;
      this.#wordsRead = 0;
      const answersAtOnce =
        current.row?.output !== 'immediate' && current.row?.output !== 'optionalImmediate';
      if (answersAtOnce || current.status !== 0) this.#finishPolled();
    } else if (this.#isAnswered && (offset === outHigh || offset === outLow)) {
      const isHigh = offset === outHigh;
      current.immediate |= isHigh ? BigInt(word) << 32n : BigInt(word);
      this.#wordsRead++;
      if (this.#wordsRead === 2) this.#finishPolled();
    }
  }

  /** Handles an EQE of type CMD. */
  event(token: number, status: number, outParam: bigint, nowPs: number): void {
    const command = this.#byToken.get(token);
    if (command === undefined) return;
    this.#byToken.delete(token);
    if (this.#current === command) this.#current = undefined;
    command.status = status;
    command.finishedPs = nowPs;
    command.immediate = outParam;
    this.#finish(command);
  }

  /** Reports unfinished commands with status -1; the register returns to its reset state. */
  reset(): void {
    if (this.#isAnswered) this.#finishPolled();
    const left = new Set(this.#byToken.values());
    if (this.#current !== undefined) left.add(this.#current);
    for (const command of left) this.#listener.commandFinished(command);
    this.#byToken.clear();
    this.#current = undefined;
    this.#registers.fill(0);
  }

  #post(nowPs: number): void {
    const registers = this.#registers.slice();
    const values = hcr.decode(registers);
    const name = commandNameOf(values.opcode);
    const row = name === undefined ? undefined : commands[name];
    const inParam = joinWords(Number(values.inParam >> 32n), Number(values.inParam & 0xffff_ffffn));
    const outParam = joinWords(Number(values.outParam >> 32n), Number(values.outParam & 0xffff_ffffn));
    const hasBox = takesBox(row?.input) && inParam !== 0;
    const command: ObservedCommand = {
      opcode: values.opcode,
      name,
      row,
      inputModifier: values.inputModifier,
      opcodeModifier: values.opcodeModifier,
      token: values.token,
      isByEvent: values.event === 1,
      toggle: values.toggle,
      inParam,
      outParam,
      registers,
      inBox: hasBox ? this.#memory.read(inParam, mailboxBytes) : undefined,
      postedPs: nowPs,
      finishedPs: nowPs,
      status: -1,
      immediate: 0n,
      outBox: undefined,
    };
    const before = this.#current;
    this.#current = command;
    if (command.isByEvent) this.#byToken.set(command.token, command);
    this.#listener.commandPosted(command, before);
  }

  #finishPolled(): void {
    const command = this.#current!;
    this.#current = undefined;
    this.#isAnswered = false;
    this.#finish(command);
  }

  #finish(command: ObservedCommand): void {
    if (takesBox(command.row?.output) && command.outParam !== 0 && command.status === 0)
      command.outBox = this.#memory.read(command.outParam, mailboxBytes);
    this.#listener.commandFinished(command);
  }
}
