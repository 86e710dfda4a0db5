/**
 * Errors seen outside a clock edge (a completion that arrives, a timer) wait here for the next edge, so that a register read at
 * the same instant never depends on which of the two is handled first.
 *
 * The latch is bounded; an error that finds it full is counted and dropped, like back-to-back errors in hardware.
 */

import { UncorrectableError } from '../../../abi/pci/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { TlpHeader } from '../tlp/index.ts';
import type { ConfigSpace } from './config-space.ts';
import type { ErrorReporting, ErrorRole } from './error-reporting.ts';

/** Status bits set by a completion with an error status. */
export type Abort = 'receivedMasterAbort' | 'receivedTargetAbort';

/** The poisoned TLP. */
type PoisonedTlp = 'request' | 'completion';

/** Kind of the error. */
type Occurrence =
  | {
      readonly kind: 'error';
      readonly error: UncorrectableError;
      readonly role: ErrorRole;
      readonly header: TlpHeader | undefined;
    }
  | { readonly kind: 'abort'; readonly abort: Abort }
  | { readonly kind: 'poisoned'; readonly header: TlpHeader; readonly source: PoisonedTlp };

interface Entry {
  visibleCycle: Cycles;
  readonly occurrence: Occurrence;
}

export interface ErrorLatchPorts {
  readonly errors: Pick<ErrorReporting, 'uncorrectable'>;
}

const DEPTH = 16;

export class ErrorLatch {
  droppedCount = 0;

  readonly #space: ConfigSpace;
  readonly #entries: Entry[] = [];
  #errors!: ErrorLatchPorts['errors'];

  constructor({ space }: { readonly space: ConfigSpace }) {
    this.#space = space;
  }

  connect({ errors }: ErrorLatchPorts): void {
    this.#errors = errors;
  }

  addError(error: UncorrectableError, role: ErrorRole, header: TlpHeader | undefined, cycle: Cycles): void {
    this.#add(cycle, { kind: 'error', error, role, header });
  }

  addAbort(abort: Abort, cycle: Cycles): void {
    this.#add(cycle, { kind: 'abort', abort });
  }

  addPoisoned(header: TlpHeader, source: PoisonedTlp, cycle: Cycles): void {
    this.#add(cycle, { kind: 'poisoned', header, source });
  }

  /** A poisoned TLP, at a clock edge. */
  notePoisoned(header: TlpHeader, source: PoisonedTlp): void {
    const registers = this.#space.header;
    registers.set('status', 'detectedParityError', 1);
    if (source === 'completion' && registers.get('command', 'parityErrorResponse') === 1) {
      registers.set('status', 'masterDataParityError', 1);
    }
    this.#errors.uncorrectable(UncorrectableError.poisonedTlp, 'sole', header);
  }

  /** Applies the errors visible at `cycle`; returns the cycle of the next entry, or Infinity. */
  apply(cycle: Cycles): number {
    while (this.#entries.length > 0 && this.#entries[0]!.visibleCycle <= cycle)
      this.#take(this.#entries.shift()!.occurrence);
    return this.#entries[0]?.visibleCycle ?? Number.POSITIVE_INFINITY;
  }

  /** Forgets errors that have not taken effect yet. */
  reset(): void {
    this.#entries.length = 0;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { entries: this.#entries.length };
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const entry of this.#entries) entry.visibleCycle -= cycles;
  }

  #add(visibleCycle: Cycles, occurrence: Occurrence): void {
    if (this.#entries.length === DEPTH) this.droppedCount++;
    else this.#entries.push({ visibleCycle, occurrence });
  }

  #take(occurrence: Occurrence): void {
    switch (occurrence.kind) {
      case 'error':
        this.#errors.uncorrectable(occurrence.error, occurrence.role, occurrence.header);
        return;
      case 'abort':
        this.#space.header.set('status', occurrence.abort, 1);
        return;
      case 'poisoned':
        this.notePoisoned(occurrence.header, occurrence.source);
    }
  }
}
