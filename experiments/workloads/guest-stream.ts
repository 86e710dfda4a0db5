/**
 * A TCP connection between a program and the real guest that is its host's peer (docs/how-to/guest.md, "A program of
 * yours at the other end"). Stock programs exchange data over it before RDMA begins. guests/serve/peer-relay.ts carries
 * it over the exchange.
 *
 *     const stream = await acceptGuest(program);             the guest connects to its peer
 *     const stream = await connectGuest(program, 18515);    to a listening socket in the guest
 *     await stream.write(bytes); const answer = await stream.read(52);
 */
import type { JsonValue, ProgramContext } from '../../machine/index.ts';

/** The guest could not be reached, or sent less than requested. */
export class GuestStreamError extends Error {
  override readonly name = 'GuestStreamError';
}

/** Bytes of a value, each of which may take six characters as JSON. */
const pieceBytes = 1024;
/** Greatest number of values sent at one instant, as limited by the exchange. */
const piecesAtOnce = 16;

/** Requirements of a stream on its program. */
export type GuestStreamUser = Pick<ProgramContext, 'exchange' | 'cpu'>;

/** A connection with the guest. One read or write at a time. */
export class GuestStream {
  readonly #program: GuestStreamUser;
  readonly #name: string;
  #received = '';
  #sentPieces = 0;
  #isAtEnd = false;

  constructor(program: GuestStreamUser, connection: number) {
    this.#program = program;
    this.#name = `tcp.${connection}`;
  }

  /**
   * Waits for this many bytes.
   * @returns fewer only at the end of the guest's stream
   */
  async read(lengthBytes: number): Promise<Uint8Array> {
    while (this.#received.length < lengthBytes && !this.#isAtEnd) {
      const piece = await this.#program.exchange.take(this.#name);
      if (typeof piece === 'string') this.#received += piece;
      else this.#isAtEnd = true;
    }
    const bytes = Uint8Array.from(this.#received.slice(0, lengthBytes), (character) =>
      character.charCodeAt(0),
    );
    this.#received = this.#received.slice(lengthBytes);
    return bytes;
  }

  /**
   * Like {@link read}.
   * @throws GuestStreamError if the guest sent fewer
   */
  async readAll(lengthBytes: number): Promise<Uint8Array> {
    const bytes = await this.read(lengthBytes);
    if (bytes.length === lengthBytes) return bytes;
    throw new GuestStreamError(`the guest ended its stream after ${bytes.length} of ${lengthBytes} bytes`);
  }

  async write(bytes: Uint8Array): Promise<void> {
    const { exchange, cpu } = this.#program;
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      await exchange.put(this.#name, Array.from(piece, (byte) => String.fromCharCode(byte)).join(''));
      if (++this.#sentPieces % piecesAtOnce === 0) await cpu.sleep(exchange.latencyPs);
    }
  }

  /** Ends this side's stream. */
  async end(): Promise<void> {
    await this.#program.exchange.put(this.#name, null);
  }
}

/** Waits until the guest connects to its peer. */
export async function acceptGuest(program: GuestStreamUser): Promise<GuestStream> {
  return streamOf(program, await program.exchange.take('tcp.accept'));
}

/**
 * Connects to a port of the guest. Only received data proves that a socket listens there: QEMU accepts the connection
 * before it has asked the guest.
 * @throws GuestStreamError if the port cannot be reached
 */
export async function connectGuest(program: GuestStreamUser, port: number): Promise<GuestStream> {
  await program.exchange.put('tcp.connect', { port });
  return streamOf(program, await program.exchange.take('tcp.connected'));
}

function streamOf(program: GuestStreamUser, answer: JsonValue): GuestStream {
  const { connection, error } = answer as { readonly connection?: number; readonly error?: string };
  if (connection === undefined) throw new GuestStreamError(error ?? 'no connection with the guest');
  return new GuestStream(program, connection);
}
