/**
 * A protocol analyser on one direction of a PCIe link: it keeps the arriving TLPs and UpdateFCs in the order of the
 * lanes.
 *
 *     other end ══ lanes ══► PacketReader ─► port          log: one packet per record
 *
 * It reads each record as it leaves the channel, before the port does, and so shares no state with either end.
 */
import { SIDEBAND_BASE, tlpRecord, UPDATE_FC, updateFcRecord } from '../../hw/pcie/index.ts';
import { ChannelReader, exactPs } from '../../sim/index.ts';

/** Names of the kinds in the standard: MWr, MRd, CplD, Cpl, CfgRd0, CfgWr0, Msg, UpdateFC. */
const kindNames = ['', 'MWr', 'MRd', 'CplD', 'Cpl', 'CfgRd0', 'CfgWr0', 'Msg', 'UpdateFC'] as const;

export interface LinkPacket {
  /** When it takes effect at this end: one latency after its last bit on the lanes. Exact up to 2.5 simulated hours. */
  readonly atPs: number;
  readonly kind: Exclude<(typeof kindNames)[number], ''>;
  /** Address of a memory request, lower address of a completion, register of a configuration request. */
  readonly address: number;
  /** Bytes of payload, or requested bytes. */
  readonly lengthBytes: number;
  readonly requesterId: number;
  readonly tag: number;
  readonly trafficClass: number;
  /** Status of a completion: 0 is success. */
  readonly status: number;
  readonly isPoisoned: boolean;
  readonly isRelaxed: boolean;
  /** Remaining bytes of a completion, including these. */
  readonly byteCount: number;
  /** Data of a configuration write, or the encoded limit of an UpdateFC (figure 3-8). */
  readonly data: number;
  /** Message code, target of a configuration request, or the flow of an UpdateFC: 0 posted, 1 non-posted, 2 completions. */
  readonly aux: number;
}

/** Packets that one end of a link has received. */
export interface LinkPackets {
  readonly node: number;
  readonly direction: 'toDevice' | 'toHost';
  /** The first packets; {@link isWhole} says whether there were more. */
  readonly packets: readonly LinkPacket[];
  readonly isWhole: boolean;
}

const keptMax = 100_000;

/** Fields that an UpdateFC lacks. */
const nothing = {
  address: 0,
  lengthBytes: 0,
  requesterId: 0,
  tag: 0,
  trafficClass: 0,
  status: 0,
  isPoisoned: false,
  isRelaxed: false,
  byteCount: 0,
};

class PacketReader extends ChannelReader {
  readonly packets: LinkPacket[] = [];
  isWhole = true;
  readonly #clock: () => { readonly epochUs: number };

  /** @param clock the reading process, which provides the start of the present epoch */
  constructor(buffer: SharedArrayBuffer, clock: () => { readonly epochUs: number }) {
    super(buffer);
    this.#clock = clock;
  }

  override take(): number {
    return this.#note(super.take());
  }

  override takeOf(kind: number): number {
    const offset = super.takeOf(kind);
    return offset < 0 ? offset : this.#note(offset);
  }

  #note(offset: number): number {
    const { bytes, packets } = this;
    const tlp = tlpRecord.decode(bytes, offset);
    const kind: number = tlp.kind;
    if (kind >= SIDEBAND_BASE) return offset;
    if (packets.length === keptMax) {
      this.isWhole = false;
      return offset;
    }
    // Fields that this kind of packet lacks are 0: the words of the record still hold older data of the ring.
    const name = kindNames[kind] as LinkPacket['kind'];
    const isUpdateFc = kind === UPDATE_FC;
    const isCompletion = name === 'CplD' || name === 'Cpl';
    const isConfiguration = name === 'CfgRd0' || name === 'CfgWr0';
    const atPs = Number(exactPs(this.#clock().epochUs, tlp.arrivalPs));
    if (isUpdateFc) {
      const { flow, limit } = updateFcRecord.decode(bytes, offset);
      packets.push({ atPs, kind: name, ...nothing, data: limit | 0, aux: flow });
      return offset;
    }
    packets.push({
      atPs,
      kind: name,
      address: tlp.address,
      lengthBytes: tlp.lengthBytes,
      requesterId: tlp.requesterId,
      tag: tlp.tag,
      trafficClass: tlp.trafficClass,
      status: isCompletion ? tlp.status : 0,
      isPoisoned: tlp.isPoisoned === 1,
      isRelaxed: tlp.isRelaxedOrdering === 1,
      byteCount: isCompletion ? tlp.byteCount : 0,
      data: name === 'CfgWr0' ? tlp.data | 0 : 0,
      aux: isConfiguration || name === 'Msg' ? tlp.aux : 0,
    });
    return offset;
  }
}

/** The log of a reader that keeps one. */
export const packetsOf = (
  node: number,
  direction: LinkPackets['direction'],
  reader: ChannelReader,
): LinkPackets[] =>
  reader instanceof PacketReader
    ? [{ node, direction, packets: reader.packets, isWhole: reader.isWhole }]
    : [];

/** Returns the reader of a link; it keeps a log if the analysis requests one. */
export const linkReader = (
  buffer: SharedArrayBuffer,
  analysis: { readonly packets?: boolean } | undefined,
  clock: () => { readonly epochUs: number },
): ChannelReader =>
  analysis?.packets === true ? new PacketReader(buffer, clock) : new ChannelReader(buffer);
