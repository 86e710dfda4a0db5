/** Reads a capture from its bytes to its conversations, in one pass and with bounded memory, and counts what it could not read. */
import { CaptureStream } from './capture-stream.ts';
import { PacketFeed } from './captured-packets.ts';
import { IwarpListener } from './iwarp/iwarp-listener.ts';
import { PacketListener } from './packet-listener.ts';
import { type Conversation, LineBudget, type LineChoice } from './talk.ts';

export class CaptureReading {
  readonly stream: CaptureStream;
  readonly feed: PacketFeed;
  readonly #packets: PacketListener;
  readonly #iwarp: IwarpListener;

  constructor(choice: LineChoice) {
    const budget = new LineBudget(choice);
    this.#packets = new PacketListener(budget);
    this.#iwarp = new IwarpListener(budget);
    this.feed = new PacketFeed({
      packet: (packet) => this.#packets.take(packet),
      segment: (segment) => this.#iwarp.take(segment),
      joinNetworks: (from, into) => this.#packets.joinNetworks(from, into),
    });
    this.stream = new CaptureStream((frame, from) => this.feed.take(frame, from));
  }

  push(piece: Uint8Array): void {
    this.stream.push(piece);
  }

  /** @param damage why the rest of the file is unavailable */
  end(damage?: string): void {
    this.stream.end(damage);
    this.feed.end();
  }

  /** Packets of connections beyond the number that is followed. */
  get unfollowed(): number {
    return this.#packets.unfollowed;
  }

  /** Returns the conversations in the order in which they began. */
  conversations(): Conversation[] {
    return [...this.#packets.conversations(), ...this.#iwarp.conversations()];
  }

  /** False if bytes or frames of the file were not read. */
  get isWhole(): boolean {
    return this.stream.problemCount === 0 && this.feed.unread.length === 0;
  }
}
