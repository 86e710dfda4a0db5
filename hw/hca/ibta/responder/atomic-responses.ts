/**
 * Answers of atomics: each is executed by the atomic unit, step by step, its result is kept and sent; a repeated one is
 * answered from the result kept, and not executed again (IBTA vol 1, 9.4.5, 9.7.5.1.4).
 */

import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount, BlockState, Wakeable } from '../../../../sim/index.ts';
import { Opcode } from '../../../../wire/index.ts';
import { ABSENT, ANSWERED, REFUSED, WAIT } from '../../answers.ts';
import {
  ATOMIC_ADD,
  ATOMIC_BYTES,
  ATOMIC_OPERAND_WORDS,
  ATOMIC_SWAP,
  type AtomicOperation,
  AtomicUnit,
  type AtomicUnitSetup,
} from '../../atomics/index.ts';
import {
  BAD_KEY,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_RESPONSE,
  RIGHT_REMOTE_ATOMIC,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import type { QpSlot, QpTable } from '../../objects/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import { AtomicResults } from './atomic-replay.ts';
import { OPERAND_WORDS, type ResponderResources, responderPlaces } from './responder-resources.ts';
import {
  type ResponsePackets,
  STALL_ATOMIC,
  STALL_RESPONSE_BUFFER,
  STALL_TRANSLATION,
} from './response-packets.ts';

const NONE = -1;
/** The mask of all bits of a word. */
const ONES = -1;

/** Parts of the device that {@link AtomicResponses} uses. */
export interface AtomicResponsesSetup extends AtomicUnitSetup {
  readonly config: AtomicUnitSetup['config'] & Pick<HcaConfig, 'responderAtomicResults' | 'atomicCycles'>;
  readonly qps: QpTable;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
}

export class AtomicResponses {
  readonly #config: AtomicResponsesSetup['config'];
  readonly #qps: QpTable;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #resources: ResponderResources;
  readonly #packets: ResponsePackets;
  readonly #account: BlockAccount;
  readonly #translation: TranslationPort;
  readonly #unit: AtomicUnit;
  readonly #results: AtomicResults;
  readonly #operands = new Int32Array(ATOMIC_OPERAND_WORDS);

  /** @param engine the response engine, in whose stage and account this works */
  constructor(
    setup: AtomicResponsesSetup,
    resources: ResponderResources,
    packets: ResponsePackets,
    account: BlockAccount,
    engine: Wakeable,
  ) {
    this.#config = setup.config;
    this.#qps = setup.qps;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#resources = resources;
    this.#packets = packets;
    this.#account = account;
    this.#translation = setup.translator.port(PORT_RESPONSE);
    this.#unit = new AtomicUnit(setup, engine);
    this.#results = new AtomicResults(setup.config.responderAtomicResults);
  }

  /** True while the memory of an atomic is being read or written. */
  get isBusy(): boolean {
    return !this.#unit.isIdle;
  }

  /** Atomics executed. */
  get executedCount(): number {
    return this.#unit.executedCount;
  }

  /**
   * Executes one step of `entry`: read, compute and write, or answer. Returns its cycles, ANSWERED, WAIT, ABSENT or
   * REFUSED.
   */
  step(qp: QpSlot, entry: number, cycle: Cycles): number {
    const resources = this.#resources;
    const unit = this.#unit;
    if (unit.isIdle && unit.mayBegin(cycle)) return this.#begin(qp, entry, cycle);
    if (unit.isRead) {
      if (unit.hasFailed) {
        unit.abandon(cycle);
        return REFUSED;
      }
      unit.compute(this.#setOperands(entry), this.#operands);
      return this.#config.atomicCycles;
    }
    if (unit.isWritten) {
      unit.end(cycle);
      const { readResourcesMax } = this.#qps.rows[qp]!;
      const psn = resources.psn[entry]!;
      this.#results.keep(qp, readResourcesMax, psn, unit.resultLow, unit.resultHigh);
      resources.giveResult(qp, psn, unit.resultLow, unit.resultHigh);
      return this.#answer(qp, entry, unit.resultLow, unit.resultHigh, cycle);
    }
    this.#account.stall(cycle, STALL_ATOMIC);
    return WAIT;
  }

  /** Answers the repeated atomic `entry`. */
  replay(qp: QpSlot, entry: number, cycle: Cycles): typeof ANSWERED | typeof WAIT {
    const { operands } = this.#resources;
    const word = entry * OPERAND_WORDS;
    return this.#answer(qp, entry, operands[word]!, operands[word + 1]!, cycle);
  }

  /**
   * Returns whether a repeated atomic can be answered: there is room, and its result is kept or is being computed. A
   * queued one is answered as it is, unless that is too early.
   */
  canReplay(qp: QpSlot, psn: number): boolean {
    const resources = this.#resources;
    const { count, pair } = resources.of(qp);
    if (count >= responderPlaces(pair)) return false;
    return resources.find(qp, psn) === NONE ? this.#results.find(qp, psn) : resources.isAhead(qp, psn);
  }

  /** Sets the result of the repetition `entry` if it is kept; an atomic that is being executed sets its own. */
  setReplay(qp: QpSlot, entry: number): void {
    const resources = this.#resources;
    if (this.#results.find(qp, resources.psn[entry]!))
      resources.setResult(entry, this.#results.low, this.#results.high);
  }

  /** Abandons an atomic whose request has been dropped. False: memory is being read or written for it. */
  abandon(cycle: Cycles): boolean {
    if (this.#unit.isWaiting) {
      this.#account.stall(cycle, STALL_ATOMIC);
      return false;
    }
    this.#unit.abandon(cycle);
    return true;
  }

  /** A new generation of the QP: no result is kept. */
  forget(qp: QpSlot): void {
    this.#results.forget(qp);
  }

  reset(): void {
    this.#unit.reset();
    this.#results.reset();
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { atomicFreeCycle: this.#unit.freeCycle };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#unit.rebase(cycles);
  }

  /** Begins only if there is room for the response: every result is answered. */
  #begin(qp: QpSlot, entry: number, cycle: Cycles): number {
    const resources = this.#resources;
    if (this.#packets.queue.isFull) {
      this.#account.stall(cycle, STALL_RESPONSE_BUFFER);
      return WAIT;
    }
    const pair = this.#qps.rows[qp]!;
    const found = this.#translation.translate(
      resources.key[entry]!,
      resources.pd[entry]!,
      resources.address[entry]!,
      resources.addressTop[entry]!,
      ATOMIC_BYTES,
      RIGHT_REMOTE_ATOMIC,
      pair,
    );
    if (found === PENDING) {
      this.#account.stall(cycle, STALL_TRANSLATION);
      return WAIT;
    }
    if (found >= BAD_KEY) {
      if (found !== PAGE_FAULT) return REFUSED;
      return this.#pageFaults.raise(qp, resources.wantedFrom(entry, 0, true), cycle) ? ABSENT : REFUSED;
    }
    this.#unit.begin(this.#translator.physicalAddress);
    this.#translation.used();
    return 1;
  }

  /**
   * Sets the unit's operands. Without masks, an addition has no boundaries, and a swap compares and replaces all bits.
   */
  #setOperands(entry: number): AtomicOperation {
    const { opcode, operands } = this.#resources;
    const word = entry * OPERAND_WORDS;
    this.#operands.set(operands.subarray(word, word + OPERAND_WORDS));
    switch (opcode[entry]) {
      case Opcode.RC_MASKED_FETCH_ADD:
        return ATOMIC_ADD;
      case Opcode.RC_FETCH_ADD:
        this.#operands.fill(0, 2);
        return ATOMIC_ADD;
      case Opcode.RC_MASKED_COMPARE_SWAP:
        return ATOMIC_SWAP;
      default:
        this.#operands.fill(ONES, 4);
        return ATOMIC_SWAP;
    }
  }

  #answer(
    qp: QpSlot,
    entry: number,
    low: number,
    high: number,
    cycle: Cycles,
  ): typeof ANSWERED | typeof WAIT {
    const packets = this.#packets;
    const pair = this.#qps.rows[qp]!;
    if (!packets.open(pair, cycle)) return WAIT;
    const { operands } = packets.packet;
    operands[0] = low;
    operands[1] = high;
    const { psn, msn, takenCounter } = this.#resources;
    const syndrome = packets.creditSyndrome(pair, takenCounter[entry]!);
    packets.seal(Opcode.RC_ATOMIC_ACKNOWLEDGE, psn[entry]!, syndrome, cycle, msn[entry]!);
    return ANSWERED;
  }
}
