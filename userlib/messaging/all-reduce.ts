/**
 * Sums of vectors over all programs, by one of three algorithms; with n programs and S bytes, in the alpha-beta model:
 *
 *     ring                2 (n - 1) alpha + 2 (n - 1)/n S beta     each sends a part to its neighbour, n - 1 times twice
 *     tree                2 log2 n (alpha + S beta)               sums go up a binomial tree, and down
 *     halving-doubling    2 log2 n alpha + 2 (n - 1)/n S beta     parts are halved, then doubled; others than powers of two first fold
 *
 * Source: Thakur, Rabenseifner and Gropp 2005.
 */
import { doublings } from './doublings.ts';

export const allReduceAlgorithms = ['ring', 'tree', 'halving-doubling'] as const;
export type AllReduceAlgorithm = (typeof allReduceAlgorithms)[number];

/** The group whose vectors are added: a {@link Communicator}. */
export interface ReducingGroup {
  readonly rank: number;
  readonly size: number;
  channelTo(peer: number): {
    send(address: number, lengthBytes: number): Promise<void>;
    receive(address: number, capacityBytes: number): Promise<number>;
  };
  exchange(
    to: number,
    sent: { readonly address: number; readonly lengthBytes: number },
    from: number,
    received: { readonly address: number; readonly capacityBytes: number },
  ): Promise<number>;
  broadcast(address: number, lengthBytes: number): Promise<void>;
  add(from: number, to: number, count: number): void;
}

/** A vector of 32-bit integers, with room for another one; both addresses are multiples of 4. */
export interface ReducedVector {
  readonly address: number;
  readonly scratch: number;
  readonly count: number;
}

/** Numbers of a vector from `first` up to, but without, `end`. */
interface Part {
  readonly first: number;
  readonly end: number;
}

export async function allReduce(
  group: ReducingGroup,
  algorithm: AllReduceAlgorithm,
  vector: ReducedVector,
): Promise<void> {
  const run = new AllReduce(group, vector);
  if (algorithm === 'ring') await run.ring();
  else if (algorithm === 'tree') await run.tree();
  else await run.halvingDoubling();
}

/** Ranks with which a rank exchanges messages; the list may have it twice, or the rank itself. */
export function allReducePeers(algorithm: AllReduceAlgorithm, rank: number, size: number): number[] {
  if (algorithm === 'ring') return [(rank + 1) % size, (rank - 1 + size) % size];
  if (algorithm === 'tree')
    return doublings(size)
      .flatMap((step) => [rank - step, rank + step])
      .filter((peer) => peer >= 0 && peer < size);
  const fold = new Fold(size);
  const place = fold.placeOf(rank);
  const pair = rank < 2 * fold.rest ? [rank ^ 1] : [];
  return place < 0 ? pair : [...pair, ...doublings(fold.places).map((step) => fold.rankAt(place ^ step))];
}

/** Reduces any number of ranks to a power of two: of the first 2 × rest ranks, the odd ones leave it to the even ones. */
class Fold {
  readonly places: number;
  readonly rest: number;

  constructor(size: number) {
    this.places = 2 ** Math.floor(Math.log2(size));
    this.rest = size - this.places;
  }

  /** Place of a rank in the power of two; -1 if it leaves its part to another. */
  placeOf(rank: number): number {
    if (rank >= 2 * this.rest) return rank - this.rest;
    return rank % 2 === 0 ? rank / 2 : -1;
  }

  rankAt(place: number): number {
    return place < this.rest ? 2 * place : place + this.rest;
  }
}

class AllReduce {
  readonly #group: ReducingGroup;
  readonly #vector: ReducedVector;

  constructor(group: ReducingGroup, vector: ReducedVector) {
    this.#group = group;
    this.#vector = vector;
  }

  async ring(): Promise<void> {
    const { rank, size } = this.#group;
    const [right, left] = [(rank + 1) % size, (rank - 1 + size) % size];
    for (let step = 0; step < size - 1; step++) {
      const received = this.#partOf(rank - step - 1);
      await this.#exchange(right, this.#partOf(rank - step), left, received, 'scratch');
      this.#add(received);
    }
    for (let step = 0; step < size - 1; step++)
      await this.#exchange(right, this.#partOf(rank + 1 - step), left, this.#partOf(rank - step), 'address');
  }

  async tree(): Promise<void> {
    const { rank, size } = this.#group;
    const { address, count } = this.#vector;
    const all: Part = { first: 0, end: count };
    for (const step of doublings(size)) {
      if ((rank & step) !== 0) {
        await this.#send(rank - step, all);
        break;
      }
      if (rank + step < size) await this.#addFrom(rank + step, all);
    }
    await this.#group.broadcast(address, count * 4);
  }

  async halvingDoubling(): Promise<void> {
    const { rank, size } = this.#group;
    const fold = new Fold(size);
    const all: Part = { first: 0, end: this.#vector.count };
    const isFolded = rank < 2 * fold.rest;
    const place = fold.placeOf(rank);
    if (place < 0) {
      await this.#send(rank - 1, all);
      await this.#receive(rank - 1, all, 'address');
      return;
    }
    if (isFolded) await this.#addFrom(rank + 1, all);
    await this.#halveAndDouble(fold, place);
    if (isFolded) await this.#send(rank + 1, all);
  }

  /** All-reduce among a power of two of programs. */
  async #halveAndDouble(fold: Fold, place: number): Promise<void> {
    let own: Part = { first: 0, end: this.#vector.count };
    const given: { readonly peer: number; readonly kept: Part; readonly left: Part }[] = [];
    for (const step of doublings(fold.places).toReversed()) {
      const peer = fold.rankAt(place ^ step);
      const [lower, upper] = halvesOf(own);
      const [kept, left] = (place & step) === 0 ? [lower, upper] : [upper, lower];
      await this.#exchange(peer, left, peer, kept, 'scratch');
      this.#add(kept);
      given.push({ peer, kept, left });
      own = kept;
    }
    for (const { peer, kept, left } of given.reverse())
      await this.#exchange(peer, kept, peer, left, 'address');
  }

  /** Part of the ring's rank, which may be negative. */
  #partOf(rank: number): Part {
    const { size } = this.#group;
    const { count } = this.#vector;
    const part = ((rank % size) + size) % size;
    return { first: Math.floor((part * count) / size), end: Math.floor(((part + 1) * count) / size) };
  }

  async #exchange(
    to: number,
    sent: Part,
    from: number,
    received: Part,
    into: 'address' | 'scratch',
  ): Promise<void> {
    const target = this.#vector[into];
    await this.#group.exchange(
      to,
      { address: this.#vector.address + sent.first * 4, lengthBytes: bytesOf(sent) },
      from,
      { address: target + received.first * 4, capacityBytes: bytesOf(received) },
    );
  }

  async #send(to: number, part: Part): Promise<void> {
    await this.#group.channelTo(to).send(this.#vector.address + part.first * 4, bytesOf(part));
  }

  async #receive(from: number, part: Part, into: 'address' | 'scratch'): Promise<void> {
    await this.#group.channelTo(from).receive(this.#vector[into] + part.first * 4, bytesOf(part));
  }

  async #addFrom(from: number, part: Part): Promise<void> {
    await this.#receive(from, part, 'scratch');
    this.#add(part);
  }

  /** Adds a part of the scratch to the vector. */
  #add({ first, end }: Part): void {
    const { address, scratch } = this.#vector;
    this.#group.add(scratch + first * 4, address + first * 4, end - first);
  }
}

const bytesOf = ({ first, end }: Part): number => (end - first) * 4;

function halvesOf({ first, end }: Part): readonly [Part, Part] {
  const middle = Math.floor((first + end) / 2);
  return [
    { first, end: middle },
    { first: middle, end },
  ];
}
