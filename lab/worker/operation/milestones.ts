/**
 * The important instants of an operation, each with its meaning.
 *
 * Packets, doorbells and CQEs name their operation. DMA of WQEs and payload does not: if concurrent operations of a
 * program do the same, those instants are omitted.
 */
import type { DecodedEvent, Milestone, PictureRecord, PictureTrack } from '../../protocol.ts';

export interface Milestones {
  readonly milestones: readonly Milestone[];
  readonly cqePs: number | undefined;
  readonly lastBytesPs: number | undefined;
}

/** The operation that the milestones describe. */
export interface PicturedOperation {
  /** Host that posted it. */
  readonly node: number;
  /** Host at the other end of its cable. */
  readonly far: number;
  readonly qpn: number;
  readonly wqeCounter: number;
  /** Name, as `WRITE`. */
  readonly name: string;
  readonly payloadBytes: number;
  /** Records of this operation alone. */
  readonly records: ReadonlySet<PictureRecord>;
}

/** DMA that began longer ago than this has ended. */
const dmaMaxPs = 2_000_000;
const atomicBytes = 8;

export function milestonesOf(
  { node: near, far, qpn, wqeCounter, name, payloadBytes, records: own }: PicturedOperation,
  records: readonly PictureRecord[],
  tracks: readonly PictureTrack[],
  decoded: readonly DecodedEvent[],
): Milestones {
  const milestones: Milestone[] = [];
  const add = (atPs: number | undefined, text: string): void => {
    if (atPs !== undefined) milestones.push({ atPs, text });
  };
  const all = (kind: string, process: string): PictureRecord[] =>
    records.filter((record) => record.kind === kind && tracks[record.track]!.process === process);
  const ownOf = (kind: string, process: string): PictureRecord[] =>
    all(kind, process).filter((record) => own.has(record));
  const written = (host: number, trafficClass: string): PictureRecord[] =>
    all('tlp', `host${host}`).filter(
      (record) => valueIn(record, 'trafficClass') === trafficClass && record.inMemoryPs !== undefined,
    );
  const cqeOf = (
    host: number,
    ofQpn: string | undefined,
    isSend: boolean,
    fromPs: number,
  ): number | undefined =>
    written(host, 'cqe').find((record) => {
      const fields = record.decoded.flatMap((at) => decoded[at]!.sections.flatMap((each) => each.fields));
      // The analyser leaves fields out that are 0.
      const counter = fields.find((field) => field.startsWith('wqeCounter=')) ?? 'wqeCounter=0';
      const isOwn = !isSend || counter === `wqeCounter=${numberText(wqeCounter)}`;
      return (
        record.fromPs >= fromPs &&
        (ofQpn === undefined || fields.includes(`qpn=${ofQpn}`)) &&
        fields.includes('isSend=1') === isSend &&
        isOwn
      );
    })?.inMemoryPs;

  add(ownOf('posted', `host${near}`)[0]?.fromPs, 'The program has posted the request: its WQE is in memory');
  add(ownOf('doorbell', `hca${near}`)[0]?.fromPs, `The device of host ${near} takes the doorbell`);
  add(
    ownOf('blueFlame', `hca${near}`)[0]?.fromPs,
    `The device of host ${near} receives the WQE by BlueFlame`,
  );
  // Frames of TCP name no operation: they are those of one that is alone.
  const isAlone = [near, far].every((host) =>
    all('posted', `host${host}`).every((record) => own.has(record)),
  );
  const messagesTo = (process: string): PictureRecord[] =>
    isAlone
      ? all('frame', process).filter(({ fromPs, label }) => fromPs > 0 && !label.startsWith('TCP'))
      : [];
  const isOfTcp = all('packet', `hca${far}`).length === 0;
  const requests = isOfTcp ? messagesTo(`hca${far}`) : ownOf('packet', `hca${far}`);
  const answers = isOfTcp ? messagesTo(`hca${near}`) : ownOf('packet', `hca${near}`);
  const firstPs = requests[0]?.fromPs;
  const isOneOfSeveral = all('posted', `host${near}`).some(
    (record) => !own.has(record) && record.fromPs > -dmaMaxPs && record.fromPs < (firstPs ?? 0),
  );
  const readBefore = (what: string): number | undefined =>
    isOneOfSeveral
      ? undefined
      : all('dmaRead', `hca${near}`).findLast(
          ({ track, toPs }) =>
            tracks[track]!.name === `read: ${what}` && toPs >= 0 && toPs <= (firstPs ?? toPs),
        )?.toPs;
  add(readBefore('wqeRead'), 'The WQE is on the device');
  add(readBefore('payloadRead'), 'The payload is on the device');
  add(firstPs, 'The first packet begins to leave');
  for (const packet of requests) {
    if (packet.arrivesPs === undefined) add(packet.toPs, `${packet.label}: lost on the cable`);
    else if (/ again/.test(packet.label)) add(packet.fromPs, `${packet.label}: sent again`);
  }
  const arrivedPs = lastArrival(requests);
  add(arrivedPs, `The last packet of host ${near} has arrived at the other device`);
  for (const packet of answers)
    if (/NAK|TERMINATE/.test(packet.label))
      add(packet.arrivesPs, `${packet.label} has arrived at host ${near}`);
  for (const host of [0, 1]) {
    for (const { atPs, summary } of decoded)
      if (atPs >= 0 && summary.startsWith(`host ${host}: EQE `) && !/ COMP$/.test(summary))
        add(atPs, `Host ${host} has an event: ${summary.replace(/^host \d: /, '')}`);
    for (const { fromPs } of all('interruptServed', `host${host}`))
      if (fromPs >= 0) add(fromPs, `A core of host ${host} begins to handle an interrupt`);
  }
  const isFetching = /READ|SWAP|ADD/.test(name);
  const reader = isFetching ? near : far;
  const bringing = isFetching ? answers : requests;
  const writes = written(reader, 'payloadWrite');
  const others = all('packet', `hca${reader}`).filter((record) => !own.has(record));
  const lastBytesPs = isOfTcp
    ? lastWriteOf(bringing, writes, payloadBytes)
    : lastBytesOf(bringing, others, writes, /SWAP|ADD/.test(name));
  add(lastBytesPs, `The last bytes are in the memory of host ${reader}`);
  add(lastArrival(answers), `The last packet of host ${far} has arrived at host ${near}’s device`);
  const destination = requests.map((record) => String(valueIn(record, 'destinationQpn')))[0];
  const isReceived = /SEND|IMM/.test(name) && arrivedPs !== undefined;
  const isNamed = isOfTcp || destination !== undefined;
  if (isReceived && isNamed && !isFollowedClosely(requests, all('packet', `hca${far}`), own))
    add(
      cqeOf(far, isOfTcp ? undefined : destination, false, arrivedPs),
      `The receiver’s CQE is in the memory of host ${far}`,
    );
  const cqePs = cqeOf(near, numberText(qpn), true, 0);
  add(cqePs, `The CQE is in the memory of host ${near}`);
  add(ownOf('taken', `host${near}`)[0]?.fromPs, 'The program has taken the completion');
  return { milestones: milestones.toSorted((left, right) => left.atPs - right.atPs), cqePs, lastBytesPs };
}

const valueIn = ({ values }: PictureRecord, name: string): string | number | undefined =>
  values.find(([each]) => each === name)?.[1];
/** Numbers as the bus analyser writes them. */
const numberText = (value: number): string => (value < 10 ? String(value) : `0x${value.toString(16)}`);

const arrivalsOf = (packets: readonly PictureRecord[]): number[] =>
  packets.flatMap(({ arrivesPs }) => arrivesPs ?? []);
const lastArrival = (packets: readonly PictureRecord[]): number | undefined => arrivalsOf(packets).at(-1);

const payloadOf = (record: PictureRecord): number => Number(valueIn(record, 'payloadBytes') ?? 0);

/** Whether packets of others arrived so shortly before an operation's that a later CQE may be theirs. */
function isFollowedClosely(
  packets: readonly PictureRecord[],
  all: readonly PictureRecord[],
  own: ReadonlySet<PictureRecord>,
): boolean {
  const [firstPs = 0] = arrivalsOf(packets);
  const lastPs = lastArrival(packets) ?? 0;
  return all.some(
    (record) =>
      !own.has(record) &&
      payloadOf(record) > 0 &&
      (record.arrivesPs ?? 0) > firstPs - dmaMaxPs &&
      (record.arrivesPs ?? 0) <= lastPs,
  );
}

/** The same for the only operation, of this many bytes. */
function lastWriteOf(
  messages: readonly PictureRecord[],
  writes: readonly PictureRecord[],
  bytes: number,
): number | undefined {
  const [firstPs = Number.POSITIVE_INFINITY] = arrivalsOf(messages);
  const own = writes.filter(({ fromPs }) => fromPs >= firstPs);
  const writtenBytes = own.reduce((sum, record) => sum + Number(valueIn(record, 'lengthBytes')), 0);
  return writtenBytes === bytes ? own.at(-1)?.inMemoryPs : undefined;
}

/**
 * The instant at which the last bytes that packets brought are in memory.
 * @param others packets that arrived at the same device
 * @param writes TLPs with payload into the memory of its host
 * @returns undefined if the writes cannot be distinguished from those of other operations
 */
function lastBytesOf(
  packets: readonly PictureRecord[],
  others: readonly PictureRecord[],
  writes: readonly PictureRecord[],
  isAtomic: boolean,
): number | undefined {
  const arrived = packets.filter(
    (record) => record.arrivesPs !== undefined && (isAtomic || payloadOf(record) > 0),
  );
  const [firstPs] = arrivalsOf(arrived);
  if (firstPs === undefined) return undefined;
  const byPsn = new Map(arrived.map((record) => [valueIn(record, 'psn'), payloadOf(record)]));
  const bytes = isAtomic ? atomicBytes : [...byPsn.values()].reduce((sum, each) => sum + each, 0);
  const foreign = arrivalsOf(others.filter((record) => payloadOf(record) > 0));
  const lastPs = lastArrival(arrived)!;
  if (foreign.some((ps) => ps > firstPs - dmaMaxPs && ps <= lastPs)) return undefined;
  const untilPs = Math.min(...foreign.filter((ps) => ps > lastPs));
  const own = writes.filter(({ fromPs }) => fromPs >= firstPs && fromPs < untilPs);
  const writtenBytes = own.reduce((sum, record) => sum + Number(valueIn(record, 'lengthBytes')), 0);
  return writtenBytes === bytes ? own.at(-1)!.inMemoryPs : undefined;
}
