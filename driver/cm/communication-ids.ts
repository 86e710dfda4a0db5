/**
 * Communication IDs of a host: numbers from 1 to 2^32 - 1 in turn, mixed with bits that are drawn once. The space belongs to
 * the host, not to a device: an ID that a peer may still remember is not reused after a device reset. Source: Linux 6.1,
 * drivers/infiniband/core/cm.c (cm.local_id_table, xa_alloc_cyclic; cm.random_id_operand).
 */
export class CommunicationIds {
  readonly #operand: number;
  #last = 0;

  /** @param operand 32 random bits, so that two lives of a host do not begin with the same IDs */
  constructor(operand: number) {
    this.#operand = operand;
  }

  /** The next ID that is not in use. 0 is not an ID: in messages it means that the peer's ID is not known. */
  next(isTaken: (id: number) => boolean): number {
    for (;;) {
      this.#last = (this.#last + 1) >>> 0;
      const id = (this.#last ^ this.#operand) >>> 0;
      if (id !== 0 && !isTaken(id)) return id;
    }
  }
}
