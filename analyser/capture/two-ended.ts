/**
 * Tells a capture of two places that were merged into one interface without directions, as mergecap makes of two files of tcpdump, from
 * one of a single place. In the former nearly every packet is there twice, and its second sighting comes before any answer to it; a packet
 * that is sent again follows an answer, or a time-out.
 */

/** A packet as it was seen. */
export interface SeenPacket {
  readonly key: string;
  readonly from: string;
  readonly to: string;
  /** PSN, or sequence number of TCP. */
  readonly number: number;
  readonly timePs: bigint;
}

/** Share of the packets that must be there twice. */
const SHARE = 0.8;
/** Longest way of a packet between two places; time-outs of retransmission are longer. */
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
