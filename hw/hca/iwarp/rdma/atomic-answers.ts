/**
 * Executes atomics of peers (RFC 7306, 5) step by step in the stage of the ReadResponder, which has opened the packet of the answer:
 *
 *     rights of the QP and of the region ─► DMA read ─► compute ─► DMA write ─► the old value, in the InboundRead
 */
import type { Cycles } from '../../../../base/index.ts';
import { AtomicOperation, type Operand } from '../../../../protocol/iwarp/index.ts';
import type { BlockAccount, Wakeable } from '../../../../sim/index.ts';
import { ABSENT, DONE, type MemoryAnswer, REFUSED, WAIT } from '../../answers.ts';
import {
  ATOMIC_ADD,
  ATOMIC_BYTES,
  ATOMIC_OPERAND_WORDS,
  ATOMIC_SWAP,
  AtomicUnit,
  type AtomicUnitSetup,
} from '../../atomics/index.ts';
import {
  BAD_KEY,
  MISSING_RIGHT,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  RIGHT_REMOTE_ATOMIC,
  SIDE_RESPONSE,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import { QP_RIGHT_ATOMIC } from '../../objects/index.ts';
import type { InboundRead } from './inbound-reads.ts';
import type { RdmaConnection } from './rdma-connection.ts';

/** An address that is no multiple of 8, or memory that cannot be read; in addition to the answers of a translation. */
const NOT_EXECUTABLE = 0;

/** Parts of the device that {@link AtomicAnswers} uses. */
export interface AtomicAnswersSetup extends AtomicUnitSetup {
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
}

/** The stage and the account in which it works, and their reasons to stall. */
export interface AtomicAnswersStage {
  readonly account: BlockAccount;
  readonly engine: Wakeable;
  readonly translation: TranslationPort;
  readonly stalls: { readonly translation: number; readonly atomic: number };
}

export class AtomicAnswers {
  /** Answer of the translation that refused the atomic at hand, or 0. */
  refusal = NOT_EXECUTABLE;
  readonly #atomicCycles: Cycles;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #stage: AtomicAnswersStage;
  readonly #unit: AtomicUnit;
  readonly #operands = new Int32Array(ATOMIC_OPERAND_WORDS);

  constructor(setup: AtomicAnswersSetup, stage: AtomicAnswersStage) {
    this.#atomicCycles = setup.config.atomicCycles;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#stage = stage;
    this.#unit = new AtomicUnit(setup, stage.engine);
  }

  /** True while an atomic is being executed. */
  get isBusy(): boolean {
    return !this.#unit.isIdle;
  }

  get executedCount(): number {
    return this.#unit.executedCount;
  }

  /** Does the next step. DONE: the old value is in `read.original`. WAIT: the stage will be woken. */
  step(connection: RdmaConnection, read: InboundRead, cycle: Cycles): MemoryAnswer {
    const unit = this.#unit;
    if (unit.isIdle && unit.mayBegin(cycle)) return this.#begin(connection, read, cycle);
    if (unit.isRead) {
      if (!unit.hasFailed) return this.#compute(read, cycle);
      unit.abandon(cycle);
      return this.#refuse(NOT_EXECUTABLE);
    }
    if (!unit.isWritten) return this.#stall(this.#stage.stalls.atomic, cycle);
    unit.end(cycle);
    read.original.low = unit.resultLow >>> 0;
    read.original.high = unit.resultHigh >>> 0;
    return DONE;
  }

  /** Abandons the atomic at hand, whose stream has ended. False: memory is being read or written for it. */
  abandon(cycle: Cycles): boolean {
    if (this.#unit.isWaiting) {
      this.#stall(this.#stage.stalls.atomic, cycle);
      return false;
    }
    this.#unit.abandon(cycle);
    return true;
  }

  reset(): void {
    this.#unit.reset();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#unit.rebase(cycles);
  }

  #begin({ pair }: RdmaConnection, { atomic }: InboundRead, cycle: Cycles): MemoryAnswer {
    const { steeringTag: key, offset: address, offsetTop: addressTop } = atomic;
    // RFC 7306, 5.1: the address is a multiple of 8. The top bits do not change that.
    if (address % ATOMIC_BYTES !== 0) return this.#refuse(NOT_EXECUTABLE);
    if ((pair.remoteRights & QP_RIGHT_ATOMIC) === 0) return this.#refuse(MISSING_RIGHT);
    const { translation, stalls } = this.#stage;
    const found = translation.translate(
      key,
      pair.pd,
      address,
      addressTop,
      ATOMIC_BYTES,
      RIGHT_REMOTE_ATOMIC,
      pair,
    );
    if (found === PENDING) return this.#stall(stalls.translation, cycle);
    if (found === PAGE_FAULT) {
      const wanted = { key, address, addressTop, lengthBytes: ATOMIC_BYTES, isWrite: true };
      if (this.#pageFaults.raise(pair.slot, { side: SIDE_RESPONSE, ...wanted }, cycle)) return ABSENT;
    }
    if (found >= BAD_KEY) return this.#refuse(found);
    this.#unit.begin(this.#translator.physicalAddress);
    translation.used();
    return this.#serve(1, cycle);
  }

  #compute({ atomic }: InboundRead, cycle: Cycles): MemoryAnswer {
    const { data, dataMask, compareData, compareMask } = atomic;
    const isAdd = atomic.operation === AtomicOperation.FETCH_ADD;
    const values = isAdd ? [data, dataMask] : [data, compareData, dataMask, compareMask];
    for (const [index, value] of values.entries()) this.#setOperand(2 * index, value);
    this.#unit.compute(isAdd ? ATOMIC_ADD : ATOMIC_SWAP, this.#operands);
    return this.#serve(this.#atomicCycles, cycle);
  }

  #setOperand(word: number, { low, high }: Operand): void {
    this.#operands[word] = low;
    this.#operands[word + 1] = high;
  }

  #serve(cycles: Cycles, cycle: Cycles): typeof WAIT {
    this.#stage.account.serve(cycle, cycles);
    this.#stage.engine.wake(cycle + cycles);
    return WAIT;
  }

  #stall(reason: number, cycle: Cycles): typeof WAIT {
    this.#stage.account.stall(cycle, reason);
    return WAIT;
  }

  #refuse(answer: number): typeof REFUSED {
    this.refusal = answer;
    return REFUSED;
  }
}
