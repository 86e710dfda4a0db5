/**
 * Programmed I/O and the system DMA controller as sides of a comparison: a card driven by hand, one frame at a time.
 *
 *     write() ─ frame, PIOTX ─► │ … │ ─► frame ─ read()          frame: Ethernet header, kind, number, length, payload
 *     wait    ◄─────────────────│ … │◄── acknowledgement         no acknowledgement in time: the frame is sent again
 *
 * `pio`: the core moves every word, and also polls the card until a frame is present. `dma`: the core moves headers;
 * the DMA controller moves the payload between the user's pinned pages and the card; both the controller and the card
 * interrupt.
 */
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { InvariantError, pageBytes } from '../../base/index.ts';
import { macAddressOf } from '../../hw/nic/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import { CardByHand, type WaitingFrame } from './card-by-hand.ts';
import type { CompareSide, Message } from './compare-plan.ts';
import { WorkFailedError } from './completion-poller.ts';

/** Local experimental EtherType 1 (IEEE 802, 9.2.3). */
const etherType = 0x88b5;
const data = 1;
const acknowledgement = 2;
/** After the Ethernet header: kind (2 bytes), number (4), bytes of payload (2), two unused bytes. */
const headerBytes = 24;
const wordBytes = 4;
/** A receiver needs less than half a millisecond for a frame word by word. */
const patiencePs = 5_000_000_000;
const triesMax = 16;

export const programmedSide = (program: ProgramContext): Promise<CompareSide> => cardSide(program, 'pio');
export const dmaSide = (program: ProgramContext): Promise<CompareSide> => cardSide(program, 'dma');

type Means = 'pio' | 'dma';

async function cardSide(program: ProgramContext, means: Means): Promise<CompareSide> {
  const card = new CardByHand(program);
  await card.bringUp();
  if (means === 'dma') await card.useInterrupts();
  const line = new FrameLine(program, card, means);
  return {
    isActive: true,
    prepare: async () => {},
    run: async (messages) => {
      for (const message of messages)
        if (program.node === 0) await line.write(message);
        else await line.read(message);
      if (program.node !== 0) await line.linger();
    },
    close: () => card.close(),
  };
}

interface Header {
  readonly kind: number;
  readonly number: number;
  readonly lengthBytes: number;
}

/** One end of the line between the two programs. */
class FrameLine {
  readonly #program: ProgramContext;
  readonly #card: CardByHand;
  readonly #means: Means;
  readonly #payloadMax: number;
  /** Number of the next frame, to be sent or expected. */
  #number = 0;

  constructor(program: ProgramContext, card: CardByHand, means: Means) {
    this.#program = program;
    this.#card = card;
    this.#means = means;
    const { mtuBytes } = program.configuration.ethernet;
    const payload = mtuBytes + ethernetHeaderBytes - headerBytes;
    this.#payloadMax = payload - (payload % wordBytes);
  }

  /** write(2): returns when the peer has acknowledged the last byte. */
  async write(message: Message): Promise<void> {
    const { cpu, host } = this.#program;
    host.systemCallEntered(cpu, 'write', 'dataPath');
    await this.#pinned(message, async () => {
      for (let done = 0; done < message.lengthBytes; done += this.#payloadMax) {
        const lengthBytes = Math.min(this.#payloadMax, message.lengthBytes - done);
        await this.#sendUntilAcknowledged({ address: message.address + done, lengthBytes });
      }
    });
  }

  /** read(2): returns when all bytes of the message have arrived. */
  async read(message: Message): Promise<void> {
    const { cpu, host } = this.#program;
    host.systemCallEntered(cpu, 'read', 'dataPath');
    await this.#pinned(message, async () => {
      for (let done = 0; done < message.lengthBytes; )
        done += await this.#receiveNext(message.address + done, message.lengthBytes - done);
    });
  }

  /** On a lossy cable the last acknowledgement may have been lost: the peer asks again. */
  async linger(): Promise<void> {
    const { lossPerMillion, corruptionPerMillion } = this.#program.configuration.ethernet;
    if (lossPerMillion + corruptionPerMillion === 0) return;
    const deadlinePs = this.#program.cpu.localPs + 2 * patiencePs;
    for (;;) {
      const frame = await this.#nextFrame(deadlinePs);
      if (frame === undefined) return;
      const { kind, number } = await this.#headerOf(frame);
      this.#card.release();
      if (kind === data) await this.#sendFrame({ kind: acknowledgement, number, lengthBytes: 0 });
    }
  }

  async #sendUntilAcknowledged(payload: Message): Promise<void> {
    const { cpu, nic } = this.#program;
    const number = this.#number++;
    for (let tried = 0; tried < triesMax; tried++) {
      if (tried > 0) nic!.programmed.retransmissions++;
      await this.#sendFrame({ kind: data, number, lengthBytes: payload.lengthBytes }, payload.address);
      if (await this.#isAcknowledged(number, cpu.localPs + patiencePs)) return;
    }
    throw new WorkFailedError(`frame ${number} was sent ${triesMax} times and not acknowledged`);
  }

  async #isAcknowledged(number: number, deadlinePs: number): Promise<boolean> {
    for (;;) {
      const frame = await this.#nextFrame(deadlinePs);
      if (frame === undefined) return false;
      const header = await this.#headerOf(frame);
      this.#card.release();
      this.#program.nic!.programmed.framesReceived++;
      if (header.kind === acknowledgement && header.number === number) return true;
    }
  }

  /**
   * Receives the expected frame and acknowledges duplicates.
   * @returns bytes of its payload
   */
  async #receiveNext(address: number, roomBytes: number): Promise<number> {
    for (;;) {
      const frame = await this.#nextFrame(Number.POSITIVE_INFINITY);
      if (frame === undefined) continue;
      const { kind, number, lengthBytes } = await this.#headerOf(frame);
      const isExpected = kind === data && number === this.#number;
      if (isExpected && lengthBytes > roomBytes)
        throw new InvariantError('bytes of a frame', lengthBytes, `at most ${roomBytes}`);
      if (isExpected) await this.#takePayload(frame.offset + headerBytes, { address, lengthBytes });
      this.#card.release();
      this.#program.nic!.programmed.framesReceived++;
      if (kind === data && number <= this.#number)
        await this.#sendFrame({ kind: acknowledgement, number, lengthBytes: 0 });
      if (!isExpected) continue;
      this.#number++;
      return lengthBytes;
    }
  }

  #nextFrame(deadlinePs: number): Promise<WaitingFrame | undefined> {
    return this.#means === 'pio' ? this.#card.pollFrame(deadlinePs) : this.#card.awaitFrame(deadlinePs);
  }

  async #headerOf({ offset }: WaitingFrame): Promise<Header> {
    const bytes = new Uint8Array(headerBytes);
    await this.#card.loadWords(offset, bytes);
    const view = new DataView(bytes.buffer);
    if (view.getUint16(12) !== etherType) return { kind: 0, number: 0, lengthBytes: 0 };
    return { kind: view.getUint16(14), number: view.getUint32(16), lengthBytes: view.getUint16(20) };
  }

  /** Writes a frame to the beginning of the packet buffer, which is free: only one frame is in flight at a time. */
  async #sendFrame({ kind, number, lengthBytes }: Header, address = 0): Promise<void> {
    const { node, peers, nic } = this.#program;
    const header = new Uint8Array(headerBytes);
    header.set(
      ethernetHeader.encode({
        destination: Uint8Array.from(macAddressOf(peers[0]!)),
        source: Uint8Array.from(macAddressOf(node)),
        type: etherType,
      }),
    );
    const view = new DataView(header.buffer);
    view.setUint16(14, kind);
    view.setUint32(16, number);
    view.setUint16(20, lengthBytes);
    this.#card.storeWords(0, header);
    if (lengthBytes > 0) await this.#putPayload(headerBytes, { address, lengthBytes });
    nic!.programmed.framesSent++;
    await this.#card.send(0, headerBytes + lengthBytes);
  }

  async #putPayload(offset: number, { address, lengthBytes }: Message): Promise<void> {
    const { memory, nic } = this.#program;
    if (this.#means === 'dma') return this.#moveByController('toCard', offset, { address, lengthBytes });
    this.#card.storeWords(offset, memory.read(address, lengthBytes));
    nic!.programmed.readBytes += lengthBytes;
    nic!.programmed.copies++;
    return undefined;
  }

  async #takePayload(offset: number, { address, lengthBytes }: Message): Promise<void> {
    const { memory, nic } = this.#program;
    if (this.#means === 'dma') return this.#moveByController('toMemory', offset, { address, lengthBytes });
    const bytes = new Uint8Array(lengthBytes);
    await this.#card.loadWords(offset, bytes);
    memory.write(address, bytes);
    nic!.programmed.writtenBytes += lengthBytes;
    nic!.programmed.copies++;
    return undefined;
  }

  /** One transfer of the controller for each page that the payload touches. */
  async #moveByController(direction: 'toCard' | 'toMemory', offset: number, payload: Message): Promise<void> {
    const { memory, cpu } = this.#program;
    await cpu.settle();
    const end = Math.ceil(payload.lengthBytes / wordBytes) * wordBytes;
    for (let done = 0; done < end; ) {
      const address = payload.address + done;
      const bytes = Math.min(end - done, pageBytes - (address % pageBytes));
      const physical = memory.process.physicalAddress(address);
      await this.#card.moveWords(direction, physical, offset + done, bytes / wordBytes);
      done += bytes;
    }
  }

  /** The controller uses physical addresses: the pages must stay. A core that moves words itself needs no pins. */
  async #pinned({ address, lengthBytes }: Message, work: () => Promise<void>): Promise<void> {
    if (this.#means === 'pio') return work();
    const { cpu, memory, host } = this.#program;
    const { pinPerPage, unpinPerPage } = host.config.cost;
    const first = Math.floor(address / pageBytes);
    const pages = Math.ceil((address + lengthBytes) / pageBytes) - first;
    await memory.touch(address, lengthBytes, 'write');
    cpu.charge('pin', pages * pinPerPage);
    await work();
    cpu.charge('pin', pages * unpinPerPage);
    return cpu.settle();
  }
}
