/**
 * The control connection of perftest's option -R: SENDs in turn, the client first. Layouts and order are of perftest 4.5-0.17
 * (perftest_communication.c: exchange_versions, check_sys_data, check_mtu, rdma_write_keys, xchg_bw_reports; struct pingpong_dest).
 */
import type { ProgramContext } from '../../machine/index.ts';
import { IBV_MTU_1024, IBV_WR_SEND, type RdmaCmId } from '../../userlib/index.ts';
import { GuestEnd } from './guest-end.ts';
import { GuestDataError } from './guest-pingpong.ts';

/** The buffer of a message: the longest is the keys. */
const messageBytesMax = 64;
const versionBytes = 16;
/** A version that perftest 4.5 accepts: at least 5.70. */
const version = '5.91';
const pageBytes = 4096;
const cacheLineBytes = 64;
const mtuBytes = 2;
const keysBytes = 56;
const figureBytes = 8;
/** Peak and average bandwidth, and the rate of messages. */
const rateCount = 3;

/** Memory that a side offers: fields of struct pingpong_dest, in network order. */
export class PerftestKeys {
  readonly qpNum: number;
  readonly rkey: number;
  readonly address: number;

  constructor(qpNum: number, rkey: number, address: number) {
    this.qpNum = qpNum;
    this.rkey = rkey;
    this.address = address;
  }

  static decode(bytes: Uint8Array): PerftestKeys {
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    return new PerftestKeys(view.getUint32(8), view.getUint32(16), Number(view.getBigUint64(24)));
  }

  encode(): Uint8Array {
    const view = new DataView(new ArrayBuffer(keysBytes));
    view.setUint32(8, this.qpNum);
    view.setUint32(16, this.rkey);
    view.setBigUint64(24, BigInt(this.address));
    return new Uint8Array(view.buffer);
  }
}

/** Keys of a side that offers no memory yet. */
export const noKeys = new PerftestKeys(0, 0, 0);

export class PerftestControl {
  readonly end: GuestEnd;
  readonly #program: ProgramContext;
  readonly #isClient: boolean;

  constructor(program: ProgramContext, end: GuestEnd, isClient: boolean) {
    this.#program = program;
    this.end = end;
    this.#isClient = isClient;
  }

  /** The messages before the test: versions, the sizes of pages and cache lines, the MTU. */
  async agree(): Promise<void> {
    const text = new TextEncoder();
    const own = new Uint8Array(versionBytes);
    own.set(text.encode(version));
    await this.#exchange(own);
    for (const value of [pageBytes, cacheLineBytes]) await this.#exchange(uint32Of(value));
    const mtu = new Uint8Array(mtuBytes);
    mtu.set(text.encode(String(IBV_MTU_1024)));
    await this.#exchange(mtu);
  }

  /** @returns the peer's */
  async exchangeKeys(own: PerftestKeys): Promise<PerftestKeys> {
    return PerftestKeys.decode(await this.#exchange(own.encode()));
  }

  /** The report of a test of bandwidth. @throws GuestDataError for a report of other messages than this side knows of */
  async exchangeReport(sizeBytes: number, iterations: number): Promise<void> {
    for (const own of [sizeBytes, iterations]) {
      const reported = viewOfFigure(await this.#exchange(uint64Of(own))).getBigUint64(0);
      if (!this.#isClient && reported !== BigInt(own))
        throw new GuestDataError(`the guest's report says ${reported}, expected ${own}`);
    }
    for (let rate = 0; rate < rateCount; rate++) await this.#exchange(uint64Of(0));
  }

  async #exchange(own: Uint8Array): Promise<Uint8Array> {
    if (this.#isClient) await this.#send(own);
    const received = await this.#receive(own.length);
    if (!this.#isClient) await this.#send(own);
    return received;
  }

  async #send(bytes: Uint8Array): Promise<void> {
    this.#program.memory.write(this.end.buffer, bytes);
    await this.end.carryOut({ opcode: IBV_WR_SEND }, this.end.buffer, bytes.length);
  }

  async #receive(lengthBytes: number): Promise<Uint8Array> {
    await this.end.received();
    const bytes = this.#program.memory.read(receiveAddressOf(this.end), lengthBytes);
    postReceive(this.end);
    return bytes;
  }
}

const receiveAddressOf = ({ buffer }: GuestEnd): number => buffer + messageBytesMax;
const postReceive = (end: GuestEnd): void => end.postReceive(receiveAddressOf(end), messageBytesMax);

/** @param open connects an ID and lets it have what it needs before that */
export async function perftestControl(
  program: ProgramContext,
  isClient: boolean,
  open: (prepare: (id: RdmaCmId) => Promise<GuestEnd>) => Promise<GuestEnd>,
): Promise<PerftestControl> {
  const end = await open(async (id) => {
    const made = await GuestEnd.create(program, id, { bufferBytes: 2 * messageBytesMax, receives: 1 });
    postReceive(made);
    return made;
  });
  return new PerftestControl(program, end, isClient);
}

const viewOfFigure = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset);

function uint32Of(value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, value);
  return new Uint8Array(view.buffer);
}

function uint64Of(value: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(figureBytes));
  view.setBigUint64(0, BigInt(value));
  return new Uint8Array(view.buffer);
}
