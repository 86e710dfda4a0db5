/**
 * Distinguishes a capture of two places merged into one interface without directions (mergecap of two tcpdump files)
 * from a capture of one place. In the former, nearly every packet appears twice, and its second sighting precedes any
 * answer to it. A retransmitted packet follows an answer or a timeout.
 */

/** A packet as it was seen. */
export interface SeenPacket {
  readonly key: string;
  readonly from: string;
  readonly to: string;
  /** PSN, or TCP sequence number. */
  readonly number: number;
  readonly timePs: bigint;
}

/** Share of packets that must appear twice. */
const SHARE = 0.8;
/** Longest travel time of a packet between two places; retransmission timeouts are longer. */
const WAY_PS = 200_000_000n;

export function seemsTwoEnded(seen: readonly SeenPacket[]): boolean {
  const open = new Map<string, number>();
  const paired = new Set<string>();
  let pairs = 0;
  seen.forEach(({ key, from, to, number, timePs }, index) => {
    const first = open.get(key);
    if (first === undefined) {
      open.set(key, index);
      return;
    }
    open.delete(key);
    const between = seen.slice(first + 1, index);
    const isAnswered = between.some(
      (other) => other.from === to && other.to === from && other.number === number,
    );
    if (isAnswered || timePs - seen[first]!.timePs > WAY_PS) return;
    pairs++;
    paired.add(`${from}>${to}`);
  });
  return paired.size > 1 && 2 * pairs >= SHARE * seen.length;
}
