/** Copies payloads into one fixed buffer without allocating. */
import { BlockCopier } from '../../../base/index.ts';

export class PayloadCopier {
  readonly target: Uint8Array;
  readonly #copier = new BlockCopier();

  constructor(target: Uint8Array) {
    this.target = target;
  }

  /** Copies `lengthBytes` of `source` at `sourceOffset` to `targetOffset`. */
  copy(source: Uint8Array, sourceOffset: number, targetOffset: number, lengthBytes: number): void {
    this.#copier.copy(this.target, targetOffset, source, sourceOffset, lengthBytes);
  }
}
