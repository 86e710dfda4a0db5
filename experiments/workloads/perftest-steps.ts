/** The tests of perftest, as either side carries them out over the data connection (perftest 4.5-0.17: perftest_resources.c, run_iter_*). */
import type { ProgramContext } from '../../machine/index.ts';
import { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND } from '../../userlib/index.ts';
import type { GuestEnd, GuestRequest } from './guest-end.ts';
import { GuestDataError } from './guest-pingpong.ts';
import { noKeys, PerftestKeys } from './perftest-control.ts';

export type Perftest =
  | 'ib_write_bw'
  | 'ib_read_bw'
  | 'ib_send_bw'
  | 'ib_write_lat'
  | 'ib_read_lat'
  | 'ib_send_lat';

/** The data connection. The first half of its buffer is sent, into the second one the peer writes. */
export class PerftestData {
  readonly end: GuestEnd;
  readonly #program: ProgramContext;
  readonly #sizeBytes: number;
  readonly #iterations: number;
  /** The peer's memory. */
  peer = noKeys;

  constructor(
    program: ProgramContext,
    end: GuestEnd,
    { sizeBytes, iterations }: { readonly sizeBytes: number; readonly iterations: number },
  ) {
    this.#program = program;
    this.end = end;
    this.#sizeBytes = sizeBytes;
    this.#iterations = iterations;
  }

  /** The memory that this side offers. */
  get keys(): PerftestKeys {
    return new PerftestKeys(this.end.id.qp!.qpNum, this.end.region.rkey, this.#receiveAddress);
  }

  async write(): Promise<void> {
    await this.#all(this.#toPeer(IBV_WR_RDMA_WRITE));
  }

  async send(): Promise<void> {
    await this.#all({ opcode: IBV_WR_SEND });
  }

  async receive(): Promise<void> {
    for (let count = 0; count < this.#iterations; count++) await this.end.received();
  }

  /** Writes other bytes each time, reads them back and compares. @throws GuestDataError */
  async writeAndRead(): Promise<void> {
    const { memory, random } = this.#program;
    const bytes = new Uint8Array(this.#sizeBytes);
    for (let count = 0; count < this.#iterations; count++) {
      fill(bytes, random.below(2 ** 32));
      memory.write(this.end.buffer, bytes);
      await this.#one(this.#toPeer(IBV_WR_RDMA_WRITE), this.end.buffer);
      await this.#one(this.#toPeer(IBV_WR_RDMA_READ), this.#receiveAddress);
      const back = memory.read(this.#receiveAddress, this.#sizeBytes);
      const at = back.findIndex((byte, index) => byte !== bytes[index]);
      if (at >= 0) throw new GuestDataError(`byte ${at} of READ ${count} is ${back[at]}, not ${bytes[at]}`);
    }
  }

  /** The last byte of each message is its number; the other side sends its own after it has seen that. */
  async writeInTurn(isFirst: boolean): Promise<void> {
    const { memory, cpu, verbs } = this.#program;
    const physical = memory.process.physicalAddress(this.#receiveAddress + this.#sizeBytes - 1);
    const arrived = async (number: number): Promise<void> => {
      await cpu.settle();
      await cpu.spin(
        physical,
        verbs.costs.pollEmpty,
        () => memory.process.bytes[physical] === (number & 0xff),
      );
    };
    for (let number = 1; number <= this.#iterations; number++) {
      if (!isFirst) await arrived(number);
      memory.write(this.end.buffer + this.#sizeBytes - 1, Uint8Array.of(number & 0xff));
      await this.#one(this.#toPeer(IBV_WR_RDMA_WRITE), this.end.buffer);
      if (isFirst) await arrived(number);
    }
  }

  async sendInTurn(isFirst: boolean): Promise<void> {
    for (let count = 0; count < this.#iterations; count++) {
      if (!isFirst) await this.end.received();
      await this.#one({ opcode: IBV_WR_SEND }, this.end.buffer);
      if (isFirst) await this.end.received();
    }
  }

  get #receiveAddress(): number {
    return this.end.buffer + this.#sizeBytes;
  }

  #toPeer(opcode: number): GuestRequest {
    return { opcode, wr: { rdma: { remoteAddr: this.peer.address, rkey: this.peer.rkey } } };
  }

  #one(request: GuestRequest, address: number): Promise<void> {
    return this.end.carryOut(request, address, this.#sizeBytes);
  }

  #all(request: GuestRequest): Promise<void> {
    return this.end.carryOutAll(request, this.end.buffer, this.#sizeBytes, this.#iterations);
  }
}

/** Fills with a sequence of 32 bits that its seed decides (Numerical Recipes, 7.1). */
function fill(bytes: Uint8Array, seed: number): void {
  let state = seed;
  for (let at = 0; at < bytes.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    bytes[at] = state >>> 24;
  }
}

interface Steps {
  /** Exchanges of keys between the data connection and the test. */
  readonly handshakes: number;
  /** Receives that are posted before the data connection. */
  readonly receives: 'none' | 'all';
  /** Whether both sides exchange figures after the test, and keys once more at the end. */
  readonly hasReport: boolean;
  readonly isClosed: boolean;
  asks(data: PerftestData): Promise<void>;
  answers(data: PerftestData): Promise<void>;
}

const nothing = async (): Promise<void> => {};

const bandwidth = { receives: 'none', handshakes: 3, hasReport: true, isClosed: true } as const;
const latency = { receives: 'none', handshakes: 4, hasReport: false, isClosed: true } as const;

/** The roles of this side in each test: as its client, and as its server. */
export const perftestSteps: Readonly<Record<Perftest, Steps>> = {
  ib_write_bw: { ...bandwidth, asks: (data) => data.write(), answers: nothing },
  ib_read_bw: { ...bandwidth, asks: (data) => data.writeAndRead(), answers: nothing },
  ib_send_bw: {
    ...latency,
    receives: 'all',
    asks: (data) => data.send(),
    answers: (data) => data.receive(),
  },
  ib_write_lat: {
    ...latency,
    isClosed: false,
    // The server begins (run_iter_lat_write).
    asks: (data) => data.writeInTurn(false),
    answers: (data) => data.writeInTurn(true),
  },
  ib_read_lat: { ...latency, asks: (data) => data.writeAndRead(), answers: nothing },
  ib_send_lat: {
    ...latency,
    receives: 'all',
    asks: (data) => data.sendInTurn(true),
    answers: (data) => data.sendInTurn(false),
  },
};
