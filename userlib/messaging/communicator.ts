/**
 * A group of programs with a message channel to each peer that they need, and the operations that all of them call
 * together, as in MPI: each call of one program matches the call of the same number of every other.
 *
 *     barrier       dissemination: in step k to rank + 2^k, from rank - 2^k
 *     broadcast     binomial tree
 *     allToAll      in step k to rank + k, from rank - k
 *     allReduce     all-reduce.ts
 *
 * Source: Thakur, Rabenseifner and Gropp 2005.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { IbvContext } from '../objects.ts';
import { type AllReduceAlgorithm, allReduce, allReducePeers, type ReducingGroup } from './all-reduce.ts';
import { doublings } from './doublings.ts';
import type { MessageChannel } from './message-channel.ts';
import { addUserMemory, copyUserMemory } from './user-copy.ts';

/** Operations of a communicator, for the channels that they need. */
export type Collective = 'barrier' | 'broadcast' | 'all-to-all' | AllReduceAlgorithm;

/**
 * The ranks with which a rank exchanges messages in these operations, ascending.
 * @param size number of programs
 */
export function collectivePeers(operations: readonly Collective[], rank: number, size: number): number[] {
  const peers = new Set(operations.flatMap((operation) => peersIn(operation, rank, size)));
  peers.delete(rank);
  return [...peers].toSorted((left, right) => left - right);
}

function peersIn(operation: Collective, rank: number, size: number): number[] {
  const others = Array.from({ length: size }, (_, other) => other);
  switch (operation) {
    case 'barrier':
      return doublings(size).flatMap((step) => [(rank + step) % size, (rank - step + size) % size]);
    case 'broadcast':
    case 'all-to-all':
      // Any rank may be the root of a tree.
      return others;
    default:
      return allReducePeers(operation, rank, size);
  }
}

export class Communicator implements ReducingGroup {
  readonly rank: number;
  /** Number of programs. */
  readonly size: number;
  readonly #context: IbvContext;
  readonly #channels: ReadonlyMap<number, MessageChannel>;

  /**
   * @param context of the program, which copies and adds its own memory
   * @param channels to the peers by rank, connected, all with the same {@link MessageCompletions}
   */
  constructor(
    context: IbvContext,
    { rank, size }: { readonly rank: number; readonly size: number },
    channels: ReadonlyMap<number, MessageChannel>,
  ) {
    this.rank = rank;
    this.size = size;
    this.#context = context;
    this.#channels = channels;
  }

  /**
   * The channel to a peer.
   * @throws ConfigurationError if the communicator was opened without it
   */
  channelTo(peer: number): MessageChannel {
    const channel = this.#channels.get(peer);
    if (channel !== undefined) return channel;
    const peers = [...this.#channels.keys()].join(', ');
    throw new ConfigurationError(`peer of rank ${this.rank}`, peer, `one it was opened for: ${peers}`);
  }

  /**
   * Sends to one peer while it receives from another, which may be the same.
   * @returns bytes received
   * @throws MessageError as {@link MessageChannel.send} and {@link MessageChannel.receive}
   */
  async exchange(
    to: number,
    sent: { readonly address: number; readonly lengthBytes: number },
    from: number,
    received: { readonly address: number; readonly capacityBytes: number },
  ): Promise<number> {
    const receive = await this.channelTo(from).startReceive(received.address, received.capacityBytes);
    const send = await this.channelTo(to).startSend(sent.address, sent.lengthBytes);
    const bytes = await this.channelTo(from).wait(receive);
    await this.channelTo(to).wait(send);
    return bytes;
  }

  /** Waits until every program has called it. */
  async barrier(): Promise<void> {
    const nothing = { address: 0, lengthBytes: 0, capacityBytes: 0 };
    for (const step of doublings(this.size))
      await this.exchange(
        (this.rank + step) % this.size,
        nothing,
        (this.rank - step + this.size) % this.size,
        nothing,
      );
  }

  /** Copies the root's bytes to every program, at its own address. */
  async broadcast(address: number, lengthBytes: number, root = 0): Promise<void> {
    const { size } = this;
    const own = (this.rank - root + size) % size;
    const rankOf = (place: number): number => (place + root) % size;
    /** The least power of two beyond it: its parent lies half of that before it. */
    const reach = 2 ** (32 - Math.clz32(own));
    if (own > 0) await this.channelTo(rankOf(own - reach / 2)).receive(address, lengthBytes);
    const sends = doublings(size).filter((step) => step >= reach && own + step < size);
    for (const step of sends) await this.channelTo(rankOf(own + step)).send(address, lengthBytes);
  }

  /**
   * Sends part n of `from` to rank n, and receives a part of each rank into that place of `to`; the own part is copied.
   * @param partBytes bytes of each of the `size` parts
   */
  async allToAll(from: number, to: number, partBytes: number): Promise<void> {
    const { rank, size } = this;
    const { platform, cpu } = this.#context;
    copyUserMemory(platform, cpu, from + rank * partBytes, to + rank * partBytes, partBytes);
    for (let step = 1; step < size; step++) {
      const target = (rank + step) % size;
      const source = (rank - step + size) % size;
      await this.exchange(target, { address: from + target * partBytes, lengthBytes: partBytes }, source, {
        address: to + source * partBytes,
        capacityBytes: partBytes,
      });
    }
  }

  /**
   * Adds vectors of 32-bit integers of all programs; each has the sums at `address` in the end.
   * @param scratch address of as many bytes, whose content is lost
   * @param count numbers in the vector
   */
  async allReduce(
    algorithm: AllReduceAlgorithm,
    address: number,
    scratch: number,
    count: number,
  ): Promise<void> {
    await allReduce(this, algorithm, { address, scratch, count });
  }

  /**
   * Registers a buffer with every channel, so that no operation registers parts of it. Each channel keeps regions of its own.
   * @throws VerbsError as ibv_reg_mr does
   */
  async register(address: number, lengthBytes: number): Promise<void> {
    for (const { cache } of this.#channels.values())
      await cache.release(await cache.acquire(address, lengthBytes));
  }

  /** Adds `count` 32-bit integers at one address to those at another. */
  add(from: number, to: number, count: number): void {
    addUserMemory(this.#context.platform, this.#context.cpu, from, to, count);
  }

  /** Waits until all sent messages have arrived. */
  async flush(): Promise<void> {
    const channels = [...this.#channels.values()];
    do {
      // Progress of one channel may answer on another.
      for (const channel of channels) await channel.flush();
    } while (channels.some(({ isFlushed }) => !isFlushed));
  }

  /** Releases all channels: after a {@link flush} and a barrier of the programs by other means. */
  async close(): Promise<void> {
    for (const channel of this.#channels.values()) await channel.close();
  }
}
