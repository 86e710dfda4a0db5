/**
 * The legacy interrupt: a level inside the function, and a virtual wire to the root complex, which one message raises and
 * another lowers.
 *
 *     level asserted ─┐
 *     INTx enabled   ─┼─ and ─► wire wanted ─► Assert_INTx / Deassert_INTx when it differs from the wire as last sent
 *     MSI-X disabled ─┘
 *
 * Promises: messages alternate; the last one sent always sets the wire to the level required at that time. Source: PCI Express
 * Base Specification 3.1, 2.2.8.1 and 6.1.2.
 */
import type { BlockState } from '../../../sim/index.ts';
import { MESSAGE_ASSERT_INTA, MESSAGE_DEASSERT_INTA } from '../tlp/index.ts';
import type { FunctionConfig } from './function-parameters.ts';

export class Intx {
  /** Messages sent, as the report counts `requested` and `delivered` for a level. */
  assertedCount = 0;
  deassertedCount = 0;

  readonly #pinIndex: number;
  #isAsserted = false;
  #isEnabled = true;
  #isWireHigh = false;

  constructor({ config }: { readonly config: Pick<FunctionConfig, 'interruptPin'> }) {
    this.#pinIndex = config.interruptPin - 1;
  }

  /** The function's level; Interrupt Status shows it even if INTx is disabled. */
  get isAsserted(): boolean {
    return this.#isAsserted;
  }

  setLevel(isAsserted: boolean): void {
    this.#isAsserted = isAsserted;
  }

  /** Whether configuration space allows INTx messages. */
  enable(isEnabled: boolean): void {
    this.#isEnabled = isEnabled;
  }

  /** True while the wire at the root complex differs from the required level. */
  get hasMessage(): boolean {
    return this.#isWireHigh !== (this.#isAsserted && this.#isEnabled);
  }

  /** Code of the message that sets the wire to the required level, which is then considered sent. */
  takeMessage(): number {
    this.#isWireHigh = !this.#isWireHigh;
    if (this.#isWireHigh) {
      this.assertedCount++;
      return MESSAGE_ASSERT_INTA + this.#pinIndex;
    }
    this.deassertedCount++;
    return MESSAGE_DEASSERT_INTA + this.#pinIndex;
  }

  /** The level falls; a message still lowers a wire that is high. */
  reset(): void {
    this.#isAsserted = false;
    this.#isEnabled = true;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { isAsserted: this.#isAsserted, isEnabled: this.#isEnabled, isWireHigh: this.#isWireHigh };
  }

  /** Handles a link that goes down: the root complex lowers its end of the wire itself. */
  linkDown(): void {
    this.#isWireHigh = false;
  }
}
