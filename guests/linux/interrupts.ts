/**
 * The guest's own counts of interrupts, read from /proc/interrupts, and their comparison with the device's.
 *
 * Linux counts the runs of a vector's handler; the device counts the messages that it sent. An event queue sends the next
 * message only after the handler has armed it again. So the counts are equal unless messages follow each other faster than the
 * guest serves them (caused by a fault, or by two queues of one vector): then some merge in the guest's pending bit, and one
 * run of the handler serves them. The queues distinguish a merged message from a lost one: a queue whose message was lost
 * remains fired, with its events unread. Linux drops its counts when a driver frees its vectors, so the device's counts start
 * at its last reset, at which a driver begins.
 *
 *     24:   0   5  PCI-MSI 524288-edge           mlx4-async@pci:0000:01:00.0      Linux 6.1: vector in bits 10:0
 *     25:   0   9  PCI-MSI 524289-edge           mlx4-1@0000:01:00.0
 *     25:   3   0  PCI-MSIX-0000:01:00.0  0-edge mlx4-async@pci:0000:01:00.0      newer: the vector itself
 */

/** One vector of a PCI function as Linux sees it. */
export interface GuestVector {
  /** Address of the function, like 0000:01:00.0. */
  readonly function: string;
  readonly vector: number;
  /** The name given by the driver. */
  readonly name: string;
  /** Runs of its handler, on all processors together. */
  readonly count: number;
}

/** One vector whose counts are compared. */
export interface VectorComparison {
  readonly adapter: number;
  readonly vector: number;
  readonly name: string;
  /** Messages the device sent since its reset, and handlers the guest ran. */
  readonly deviceCount: number;
  readonly guestCount: number;
  readonly isEqual: boolean;
  /** True if the counts are equal, or the guest has run fewer handlers and no event queue of the vector waits. */
  readonly isServed: boolean;
}

/** The device's counts of a vector. */
export interface DeviceVector {
  readonly raised: number;
  readonly unservedQueues: number;
}

const noMessages: DeviceVector = { raised: 0, unservedQueues: 0 };

/** Bits of a Linux 6.1 hardware interrupt number that hold the MSI-X vector. */
const vectorMask = 0x7ff;

/** The MSI-X vectors in the text of /proc/interrupts. */
export function parseInterrupts(text: string): GuestVector[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*\d+:((?:\s+\d+)+)\s+(PCI-MSIX?)(\S*)\s+(\d+)-edge\s+(\S+@(?:pci:)?([0-9a-f:.]+))/.exec(
      line,
    );
    if (match === null) return [];
    const [, counts, , perFunction, number, name, address] = match;
    const count = counts!
      .trim()
      .split(/\s+/)
      .reduce((sum, digits) => sum + Number(digits), 0);
    // A kernel with an interrupt domain per function names the function and numbers by vector.
    const vector = perFunction === '' ? Number(number) & vectorMask : Number(number);
    return [{ function: address!, vector, name: name!, count }];
  });
}

/**
 * Compares the vectors of one adapter. Vectors that the guest does not use at present are left out, unless the device sent
 * messages for them while the guest has others of the same adapter.
 */
export function compareVectors(
  adapter: number,
  guestVectors: readonly GuestVector[],
  deviceVectors: ReadonlyMap<number, DeviceVector>,
): VectorComparison[] {
  if (guestVectors.length === 0) return [];
  const byVector = new Map(guestVectors.map((vector) => [vector.vector, vector]));
  const vectors = new Set(byVector.keys());
  for (const [vector, { raised }] of deviceVectors) if (raised > 0) vectors.add(vector);
  return [...vectors]
    .sort((a, b) => a - b)
    .map((vector) => {
      const { raised: deviceCount, unservedQueues } = deviceVectors.get(vector) ?? noMessages;
      const handler = byVector.get(vector);
      const guestCount = handler?.count ?? 0;
      const name = handler?.name ?? '(no handler)';
      const isEqual = deviceCount === guestCount;
      const hasMerged = guestCount > 0 && guestCount < deviceCount && unservedQueues === 0;
      const isServed = isEqual || hasMerged;
      return { adapter, vector, name, deviceCount, guestCount, isEqual, isServed };
    });
}

/** The counts of a device's report that are compared. */
export interface DeviceVectorRow {
  readonly vector: number;
  readonly raisedSinceEnabled: number;
  readonly unservedQueues: number;
}

/**
 * Compares the device's counts with the vectors of stock drivers.
 * @param address the function's in the guest
 * @param text of /proc/interrupts
 */
export function comparedWithDevice(
  adapter: number,
  address: string,
  text: string,
  rows: readonly DeviceVectorRow[],
): VectorComparison[] {
  const vectors = parseInterrupts(text).filter(
    ({ function: place, name }) => name.startsWith('mlx4') && place === address,
  );
  const counted = rows.map(
    ({ vector, raisedSinceEnabled: raised, unservedQueues }) => [vector, { raised, unservedQueues }] as const,
  );
  return compareVectors(adapter, vectors, new Map(counted));
}
