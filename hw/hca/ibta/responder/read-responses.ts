/**
 * Packets of READ responses: the payload is read from host memory page by page, under the region's present key and
 * rights. An absent page of an on-demand region is requested (IBTA vol 1, 9.7.5.1.9).
 */

import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount, ClockDomain, Wakeable } from '../../../../sim/index.ts';
import { Opcode, psnAdd } from '../../../../wire/index.ts';
import { TrafficClass } from '../../../dma/index.ts';
import { ABSENT, DONE, DONE_LAST, type MemoryAnswer, REFUSED, WAIT } from '../../answers.ts';
import {
  BAD_KEY,
  type DmaReads,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_RESPONSE,
  RIGHT_REMOTE_READ,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import type { QpSlot, QpTable } from '../../objects/index.ts';
import type { ReactionPoint } from '../congestion/index.ts';
import type { ResponderResources } from './responder-resources.ts';
import { type ResponsePackets, STALL_DMA, STALL_TRANSLATION } from './response-packets.ts';

/** Parts of the device that {@link ReadResponses} uses. */
export interface ReadResponsesSetup {
  readonly domain: ClockDomain;
  readonly dmaRead: DmaReads;
  readonly qps: QpTable;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly reactionPoint: ReactionPoint;
}

export class ReadResponses {
  readonly #dmaRead: DmaReads;
  readonly #qps: QpTable;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #reactionPoint: ReactionPoint;
  readonly #resources: ResponderResources;
  readonly #packets: ResponsePackets;
  readonly #account: BlockAccount;
  readonly #readRequester: number;
  readonly #translation: TranslationPort;
  /** Payload bytes of the open packet whose reads are under way, and its payload length. */
  #filled = 0;
  #wanted = 0;

  /** @param engine the response engine, in whose stage and account this works */
  constructor(
    setup: ReadResponsesSetup,
    resources: ResponderResources,
    packets: ResponsePackets,
    account: BlockAccount,
    engine: Wakeable,
  ) {
    this.#dmaRead = setup.dmaRead;
    this.#qps = setup.qps;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#reactionPoint = setup.reactionPoint;
    this.#resources = resources;
    this.#packets = packets;
    this.#account = account;
    this.#translation = setup.translator.port(PORT_RESPONSE);
    this.#readRequester = setup.dmaRead.addRequester(
      {
        name: 'responseRead',
        fifoDepth: 16,
        trafficClass: TrafficClass.payloadRead,
        weight: 4,
        placesEarly: true,
      },
      {
        done: (slot, status, cycle) => packets.payloadRead(slot, status, cycle),
        space: () => engine.wake(setup.domain.cycle + 1),
      },
    );
  }

  /** Payload of the packet that was made last. */
  get payloadBytes(): number {
    return this.#wanted;
  }

  /** Makes the next packet of the READ `entry`. DONE: it is sealed. */
  send(qp: QpSlot, entry: number, cycle: Cycles): MemoryAnswer | typeof DONE_LAST {
    const resources = this.#resources;
    const packets = this.#packets;
    const pair = this.#qps.rows[qp]!;
    const mtu = pair.mtuBytes;
    const packetCount = Math.max(1, Math.ceil(resources.bytes[entry]! / mtu));
    const index = resources.sent[entry]!;
    if (!packets.isOpen) {
      if (!packets.open(pair, cycle)) return WAIT;
      this.#filled = 0;
      this.#wanted = Math.min(mtu, resources.bytes[entry]! - index * mtu);
    }
    const gathered = this.#gather(qp, entry, index * mtu, cycle);
    if (gathered !== DONE) return gathered;
    packets.packet.payloadBytes = this.#wanted;
    const isLast = index === packetCount - 1;
    const psn = psnAdd(resources.psn[entry]!, index);
    const syndrome = packets.creditSyndrome(pair, resources.takenCounter[entry]!);
    const opcode = readResponseOpcode(index === 0, isLast);
    packets.seal(opcode, psn, syndrome, cycle, resources.msn[entry]!);
    if (this.#reactionPoint.isPacing)
      this.#reactionPoint.made(pair, opcode, this.#wanted, pair.staticRateCode, pair.hasGrh === 1);
    resources.sent[entry] = index + 1;
    return isLast ? DONE_LAST : DONE;
  }

  /** Begins the DMA reads of the open packet's payload. DONE: all of them. */
  #gather(qp: QpSlot, entry: number, skippedBytes: number, cycle: Cycles): MemoryAnswer {
    const resources = this.#resources;
    const { packet } = this.#packets;
    const key = resources.key[entry]!;
    const pd = resources.pd[entry]!;
    const top = resources.addressTop[entry]!;
    const pair = this.#qps.rows[qp]!;
    while (this.#filled < this.#wanted) {
      const skipped = skippedBytes + this.#filled;
      const address = resources.address[entry]! + skipped;
      const wanted = this.#wanted - this.#filled;
      const found = this.#translation.translate(key, pd, address, top, wanted, RIGHT_REMOTE_READ, pair);
      if (found === PENDING) {
        this.#account.stall(cycle, STALL_TRANSLATION);
        return WAIT;
      }
      if (found >= BAD_KEY) {
        if (found !== PAGE_FAULT) return REFUSED;
        const isAsked = this.#pageFaults.raise(qp, resources.wantedFrom(entry, skipped, false), cycle);
        return isAsked ? ABSENT : REFUSED;
      }
      if (!this.#dmaRead.canRequest(this.#readRequester)) {
        this.#account.stall(cycle, STALL_DMA);
        return WAIT;
      }
      const bytes = Math.min(this.#translator.contiguousBytes, wanted);
      const target = packet.payloadOffset + this.#filled;
      packet.pendingReads++;
      this.#dmaRead.request(
        this.#readRequester,
        this.#translator.physicalAddress,
        bytes,
        target,
        packet.slot,
      );
      this.#translation.used();
      this.#filled += bytes;
    }
    return DONE;
  }
}

function readResponseOpcode(isFirst: boolean, isLast: boolean): number {
  if (isFirst && isLast) return Opcode.RC_RDMA_READ_RESPONSE_ONLY;
  if (isFirst) return Opcode.RC_RDMA_READ_RESPONSE_FIRST;
  return isLast ? Opcode.RC_RDMA_READ_RESPONSE_LAST : Opcode.RC_RDMA_READ_RESPONSE_MIDDLE;
}
