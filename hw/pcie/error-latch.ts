/**
 * Errors seen outside a clock edge (a completion that arrives, a timer) wait here for the next edge, so that a register
 * read at the very same instant never depends on which of the two is handled first.
 *
 * The latch is bounded; an error that finds it full is counted and forgotten, as back-to-back errors in hardware are.
 */

import { UncorrectableError } from '../../abi/pci/index.ts';
import type { Cycles } from '../../base/units.ts';
import type { BlockState } from '../../sim/block.ts';
import type { ErrorReporting, ErrorRole } from './aer.ts';
import type { ConfigSpace } from './config-space.ts';
import type { TlpHeader } from './tlp-header.ts';

/** Status bits that a completion with an error status sets. */
export type Abort = 'receivedMasterAbort' | 'receivedTargetAbort';

interface Entry {
  visibleCycle: Cycles;
  readonly apply: () => void;
}

const DEPTH = 16;

export class ErrorLatch {
  droppedCount = 0;

  readonly #space: ConfigSpace;
  readonly #errors: ErrorReporting;
  readonly #entries: Entry[] = [];

  constructor(space: ConfigSpace, errors: ErrorReporting) {
    this.#space = space;
    this.#errors = errors;
  }

  addError(error: UncorrectableError, role: ErrorRole, header: TlpHeader | undefined, cycle: Cycles): void {
    this.#add(cycle, () => this.#errors.uncorrectable(error, role, header));
  }

  addAbort(abort: Abort, cycle: Cycles): void {
    this.#add(cycle, () => this.#space.header.set('status', abort, 1));
  }

  addPoisoned(header: TlpHeader, source: 'request' | 'completion', cycle: Cycles): void {
    this.#add(cycle, () => this.notePoisoned(header, source));
  }

  /** A poisoned TLP, at a clock edge. */
  notePoisoned(header: TlpHeader, source: 'request' | 'completion'): void {
    const registers = this.#space.header;
    registers.set('status', 'detectedParityError', 1);
    if (source === 'completion' && registers.get('command', 'parityErrorResponse') === 1) {
      registers.set('status', 'masterDataParityError', 1);
    }
    this.#errors.uncorrectable(UncorrectableError.poisonedTlp, 'sole', header);
  }

  /** Applies what is visible at `cycle`; returns the cycle of the next entry, or Infinity. */
  apply(cycle: Cycles): number {
    while (this.#entries.length > 0 && this.#entries[0]!.visibleCycle <= cycle)
      this.#entries.shift()!.apply();
    return this.#entries[0]?.visibleCycle ?? Number.POSITIVE_INFINITY;
  }

  /** Forgets what has not taken effect yet. */
  reset(): void {
    this.#entries.length = 0;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { entries: this.#entries.length };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const entry of this.#entries) entry.visibleCycle -= cycles;
  }

  #add(visibleCycle: Cycles, apply: () => void): void {
    if (this.#entries.length === DEPTH) this.droppedCount++;
    else this.#entries.push({ visibleCycle, apply });
  }
}
