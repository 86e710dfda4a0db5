/**
 * Places the data of READ and atomic responses: scatters the payload of a response into the segments of the work
 * request, page by page, under their keys. A packet that has to wait continues where it stopped.
 */

import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount } from '../../../../sim/index.ts';
import { PACKET_PAYLOAD_OFFSET } from '../../../../wire/index.ts';
import { ABSENT, DONE, type MemoryAnswer, REFUSED, WAIT } from '../../answers.ts';
import {
  BAD_KEY,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_RECEIVER,
  RIGHT_LOCAL_WRITE,
  SIDE_REQUESTER,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import type { QueuePair, SendRecord } from '../../objects/index.ts';
import { type ReadUnit, STALL_DMA, STALL_TRANSLATION } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { PayloadWriter } from '../../receive-queue/index.ts';
import type { ReceivedPackets } from '../packets/index.ts';

/** Parts of the device that {@link ResponsePlacement} uses. */
export interface ResponsePlacementSetup {
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly received: ReceivedPackets;
  readonly readUnit: ReadUnit;
  readonly config: Pick<HcaConfig, 'readSegmentCycles'>;
}

export class ResponsePlacement {
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #port: ReceivedPackets;
  #writer!: PayloadWriter;
  readonly #account: BlockAccount;
  readonly #translation: TranslationPort;
  readonly #readUnit: ReadUnit;
  readonly #segmentCycles: Cycles;
  /** Payload bytes of the packet that are on their way, and their TLPs. */
  #placed = 0;
  #tlpCount = 0;

  constructor(setup: ResponsePlacementSetup, account: BlockAccount) {
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#port = setup.received;
    this.#readUnit = setup.readUnit;
    this.#segmentCycles = setup.config.readSegmentCycles;
    this.#account = account;
    this.#translation = setup.translator.port(PORT_RECEIVER);
  }

  connect({ writer }: { readonly writer: PayloadWriter }): void {
    this.#writer = writer;
  }

  /** Begins a new packet. */
  begin(): void {
    this.#placed = 0;
    this.#tlpCount = 0;
  }

  /** Writes `bytes` of response payload of the packet at `offset`, which are those from `firstByte` on of the whole response. */
  place(
    offset: number,
    pair: QueuePair,
    request: SendRecord,
    firstByte: number,
    bytes: number,
    cycle: Cycles,
  ): MemoryAnswer {
    while (this.#placed < bytes) {
      let position = firstByte + this.#placed;
      let segment = 0;
      const count = request.segmentCount;
      while (segment < count && position >= request.segment(segment).bytes)
        position -= request.segment(segment++).bytes;
      if (segment === count) return REFUSED;
      const target = request.segment(segment);
      const { key, addressTop } = target;
      const rest = target.bytes - position;
      const wanted = Math.min(bytes - this.#placed, rest);
      const address = target.address + position;
      const found = this.#translation.translate(
        key,
        pair.pd,
        address,
        addressTop,
        wanted,
        RIGHT_LOCAL_WRITE,
        pair,
      );
      if (found === PENDING) {
        this.#account.stall(cycle, STALL_TRANSLATION);
        return WAIT;
      }
      if (found >= BAD_KEY) {
        if (found !== PAGE_FAULT) return REFUSED;
        const wantedPages = {
          side: SIDE_REQUESTER,
          key,
          address,
          addressTop,
          lengthBytes: rest,
          isWrite: true,
        };
        return this.#pageFaults.raise(pair.slot, wantedPages, cycle) ? ABSENT : REFUSED;
      }
      if (!this.#writer.canWrite) {
        this.#account.stall(cycle, STALL_DMA);
        return WAIT;
      }
      const part = Math.min(wanted, this.#translator.contiguousBytes);
      this.#writer.write(
        this.#translator.physicalAddress,
        part,
        this.#port.rxBytes,
        offset + PACKET_PAYLOAD_OFFSET + this.#placed,
      );
      if (this.#segmentCycles > 0)
        this.#tlpCount += this.#writer.tlpCount(this.#translator.physicalAddress, part);
      this.#translation.used();
      this.#placed += part;
    }
    if (this.#tlpCount > 1) this.#readUnit.occupy(cycle, 0, (this.#tlpCount - 1) * this.#segmentCycles);
    this.#tlpCount = 0;
    return DONE;
  }
}
