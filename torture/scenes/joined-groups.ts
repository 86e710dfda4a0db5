/**
 * Datagrams to multicast groups whose members join and leave, at both hosts and several at one port, sent by members and by others, some with a
 * GRH to one host. Each member receives each datagram of its group once, whole and in the order of its sender (IBTA 9.8.3, 10.5; interface
 * sheet 5.6); a sender that blocks loopback receives none of its own, and a QP that has left, never joined or has another Q_Key none at all.
 *
 *     both: join, leave, post receives ─► both: send ─► both: what came is what was due ─► …
 */
import { qkey, type RcBuffer } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { allThatCame, grhBytes, readyDatagrams } from './datagrams.ts';
import type { ArgsOf, Device, Draft, Draws, Stage, Taken } from './language/index.ts';
import { codeOf, isWell, patternOf, SEND, scene, sumOf, times, topic } from './language/index.ts';

const payloadBytesMax = 1024;
const slotBytes = grhBytes + payloadBytesMax;
const receivesOfQp = 64;
const datagramsMax = 20;
const hopLimit = 64;
const multicastQpn = 0xff_ffff;
const firstGroupLid = 0xc001;

/** A QP of a host. */
interface Place {
  readonly host: number;
  readonly qp: number;
}

interface Datagram {
  readonly from: Place;
  readonly group: number;
  /** Destination QP and its host's GID; omitted: the group. */
  readonly to?: Place;
  readonly lengthBytes: number;
}

function draw(random: Draws) {
  const qps = times(2, () =>
    times(1 + random.below(4), () => ({
      blocksLoopback: random.chance(0.3),
      isKeyOther: random.chance(0.15),
    })),
  );
  const places: Place[] = qps.flatMap((own, host) => own.map((_, qp) => ({ host, qp })));
  const groups = 1 + random.below(3);
  const lengthMax = random.oneOf([8, 300, payloadBytesMax]);
  const rounds = times(2 + random.below(4), () => {
    const share = random.oneOf([0.3, 0.6, 1]);
    return {
      // Membership of each QP, by group.
      members: times(groups, () => places.filter(() => random.chance(share))),
      datagrams: times(random.below(datagramsMax + 1), (): Datagram => {
        const [from, group] = [random.oneOf(places), random.below(groups)];
        const to = random.chance(0.2) ? { to: random.oneOf(places) } : {};
        return { from, group, ...to, lengthBytes: random.below(lengthMax + 1) };
      }),
    };
  });
  // Index of the source GID in the port's table.
  const args = { groups, gidPlace: random.below(4), qps, rounds };
  // Groups have their own forms on Ethernet, so this scene uses Ethernet more often than others.
  const version = random.chance(0.35) ? 'v1' : 'v2';
  const onEthernet = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': version };
  const set = random.maybe(0.5, () => onEthernet);
  return { args, set, hasDrawnHardware: random.chance(0.5), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Number of the first datagram of a round, over all rounds. */
const firstOf = ({ rounds }: Args, round: number): number =>
  sumOf(rounds.slice(0, round).map(({ datagrams }) => datagrams.length));

const isSame = (left: Place, right: Place): boolean => left.host === right.host && left.qp === right.qp;

const isMember = ({ rounds }: Args, round: number, group: number, place: Place): boolean =>
  rounds[round]?.members[group]?.some((member) => isSame(member, place)) ?? false;

/** Numbers of the datagrams of a sender that a QP must receive in a round, in order. */
function dueTo(place: Place, from: Place, args: Args, round: number): number[] {
  const { blocksLoopback, isKeyOther } = args.qps[place.host]![place.qp]!;
  return args.rounds[round]!.datagrams.flatMap((datagram, at) => {
    const { group, to } = datagram;
    const isMeant = to === undefined ? isMember(args, round, group, place) : isSame(to, place);
    const isEcho = to === undefined && blocksLoopback && isSame(from, place);
    return isSame(datagram.from, from) && isMeant && !isEcho && !isKeyOther ? [at] : [];
  });
}

/** A host's port as datagrams need it. */
async function portOf({ context }: Device, gidPlace: number) {
  const { lid, linkLayer } = await ibv.queryPort(context, 1);
  if (linkLayer !== ibv.IBV_LINK_LAYER_ETHERNET)
    return { isEthernet: false, isVersion2: false, gid: await ibv.queryGid(context, 1, 0), gidIndex: 0, lid };
  const entries = await ibv.queryGidTable(context, 1);
  const { gid, gidIndex, gidType } = entries[gidPlace % entries.length]!;
  return { isEthernet: true, isVersion2: gidType === ibv.IBV_GID_TYPE_ROCE_V2, gid, gidIndex, lid: 0 };
}

type Port = Awaited<ReturnType<typeof portOf>>;

/**
 * Returns the GID of a group, of the kind that the port's own GID needs: of 239.129.2.x as Linux' rdma_cm makes it, or
 * ff12::x.
 */
function groupGid({ gid: own, isVersion2 }: Port, group: number): Uint8Array {
  const isMapped = own.subarray(0, 12).every((byte, at) => byte === (at < 10 ? 0 : 0xff));
  const last = group + 1;
  const gid = new Uint8Array(16);
  if (!isMapped) gid.set([0xff, 0x12]);
  else if (!isVersion2) gid.set([0xff, 0x0e]);
  if (isMapped) gid.set([0xff, 0xff, 239, 129, 2, last], 10);
  else gid[15] = last;
  return gid;
}

interface News {
  readonly gid: readonly number[];
  readonly lid: number;
  readonly qpNums: readonly number[];
}

/** A host of the scene: it sends and receives. */
async function host(stage: Stage<Args>): Promise<void> {
  const { node: own, args } = stage;
  const device = await stage.open();
  const port = await portOf(device, args.gidPlace);
  const cq = await device.cq(512);
  const qps = await openQps(stage, device, cq);
  const area = await device.buffer((qps.length * receivesOfQp + datagramsMax) * slotBytes);
  const news: News = { gid: [...port.gid], lid: port.lid, qpNums: qps.map(({ qpNum }) => qpNum) };
  const there = await stage.swap<News>(topic('groups'), news);
  const hosts = own === 0 ? [news, there] : [there, news];
  const gids = times(args.groups, (group) => groupGid(port, group));
  const handles = await openHandles(device, port, gids, hosts);
  const members = new Members({ stage, device, cq, qps, area, hosts, gids });
  for (const round of args.rounds.keys()) {
    await members.settle(round);
    members.fill();
    await stage.meet('members');
    const sent = members.send(round, handles);
    await stage.meet('datagrams');
    await members.judge(round, sent);
    await stage.meet('round is over');
  }
  await members.leave();
}

async function openQps({ node, args }: Stage<Args>, device: Device, cq: ibv.IbvCq): Promise<ibv.IbvQp[]> {
  const qps: ibv.IbvQp[] = [];
  const cap = { maxSendWr: datagramsMax, maxRecvWr: receivesOfQp, maxSendSge: 1, maxRecvSge: 1 };
  for (const { blocksLoopback, isKeyOther } of args.qps[node]!) {
    const createFlags = blocksLoopback ? ibv.IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
    const qp = await device.qp(cq, { qpType: ibv.IBV_QPT_UD, createFlags, cap });
    await readyDatagrams(qp);
    if (isKeyOther) await ibv.modifyQp(qp, { qkey: qkey ^ 1 }, ibv.IBV_QP_QKEY);
    qps.push(qp);
  }
  return qps;
}

/** Address handles, by group and by host. */
interface Handles {
  readonly toGroups: readonly ibv.IbvAh[];
  readonly toHosts: readonly ibv.IbvAh[];
}

async function openHandles(
  device: Device,
  { isEthernet, gidIndex }: Port,
  gids: readonly Uint8Array[],
  hosts: readonly News[],
): Promise<Handles> {
  const handle = async (dgid: Uint8Array, dlid: number): Promise<ibv.IbvAh> => {
    const grh = { dgid, flowLabel: 0, sgidIndex: gidIndex, hopLimit, trafficClass: 0 };
    const path = { sl: 0, srcPathBits: 0, portNum: 1, isGlobal: 1 as const, grh };
    return device.handle(await ibv.createAh(device.pd, { ...path, dlid: isEthernet ? 0 : dlid }));
  };
  const toGroups: ibv.IbvAh[] = [];
  for (const [group, gid] of gids.entries()) toGroups.push(await handle(gid, firstGroupLid + group));
  const toHosts: ibv.IbvAh[] = [];
  for (const { gid, lid } of hosts) toHosts.push(await handle(Uint8Array.from(gid), lid));
  return { toGroups, toHosts };
}

interface Parts {
  readonly stage: Stage<Args>;
  readonly device: Device;
  readonly cq: ibv.IbvCq;
  readonly qps: readonly ibv.IbvQp[];
  readonly area: RcBuffer;
  readonly hosts: readonly News[];
  readonly gids: readonly Uint8Array[];
}

/** The QPs of a host, their groups, and the data of their receives. */
class Members {
  readonly #parts: Parts;
  /** Receives that are not posted, by QP. */
  readonly #free: number[][];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#free = parts.qps.map(() => times(receivesOfQp, (slot) => slot));
  }

  #place(qp: number): Place {
    return { host: this.#parts.stage.node, qp };
  }

  /** Has QPs join and leave. */
  async settle(round: number): Promise<void> {
    const { stage, qps, gids } = this.#parts;
    for (const [group, gid] of gids.entries())
      for (const [at, qp] of qps.entries()) {
        const [was, is] = [round - 1, round].map((one) => isMember(stage.args, one, group, this.#place(at)));
        if (is && !was) await ibv.attachMcast(qp, gid, firstGroupLid + group);
        if (was && !is) await ibv.detachMcast(qp, gid, firstGroupLid + group);
      }
  }

  /** A member must leave before it is destroyed (ib_uverbs: EBUSY). */
  async leave(): Promise<void> {
    const { stage, qps, gids } = this.#parts;
    const last = stage.args.rounds.length - 1;
    for (const [at, qp] of qps.entries()) {
      const joined = [...gids.keys()].filter((group) => isMember(stage.args, last, group, this.#place(at)));
      const destroyed = joined.length === 0 ? 'EBUSY' : await codeOf(ibv.destroyQp(qp));
      if (destroyed !== 'EBUSY')
        stage.accuse(`a member of ${joined.length} groups was destroyed: ${destroyed}`);
      for (const group of joined) await ibv.detachMcast(qp, gids[group]!, firstGroupLid + group);
      const left = await codeOf(ibv.detachMcast(qp, gids[0]!, firstGroupLid));
      if (left !== 'EINVAL') stage.accuse(`a QP left a group that it is no member of: ${left}`);
    }
  }

  /** Posts all receives. */
  fill(): void {
    const { stage, qps, area } = this.#parts;
    for (const [at, qp] of qps.entries())
      for (const slot of this.#free[at]!.splice(0)) {
        const wrId = at * receivesOfQp + slot;
        const sgList = [{ addr: area.address + wrId * slotBytes, length: slotBytes, lkey: area.region.lkey }];
        const error = ibv.postRecv(qp, { wrId, sgList, numSge: 1 });
        if (error !== 0) stage.accuse(`a receive was refused with ${error}`);
      }
  }

  /** Sends the datagrams of a round. @returns how many were posted */
  send(round: number, { toGroups, toHosts }: Handles): number {
    const { stage, qps, area, hosts } = this.#parts;
    let sent = 0;
    for (const [at, { from, group, to, lengthBytes }] of stage.args.rounds[round]!.datagrams.entries()) {
      if (from.host !== stage.node) continue;
      const addr = area.address + (qps.length * receivesOfQp + at) * slotBytes;
      stage.memory.write(addr, patternOf(firstOf(stage.args, round) + at, lengthBytes));
      const remoteQpn = to === undefined ? multicastQpn : hosts[to.host]!.qpNums[to.qp]!;
      const ah = to === undefined ? toGroups[group]! : toHosts[to.host]!;
      const error = ibv.postSend(qps[from.qp]!, {
        wrId: at,
        sgList: [{ addr, length: lengthBytes, lkey: area.region.lkey }],
        ...{ numSge: 1, opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED },
        wr: { ud: { ah, remoteQpn, remoteQkey: qkey } },
      });
      if (error !== 0) stage.accuse(`datagram ${at} of round ${round} was refused with ${error}`);
      else sent++;
    }
    return sent;
  }

  /** Compares the datagrams received in a round with those sent in it. */
  async judge(round: number, sent: number): Promise<void> {
    const { stage, cq, qps, hosts } = this.#parts;
    const came = await allThatCame(stage, cq);
    const failed = came.filter((one) => !isWell(one)).length;
    if (failed > 0) stage.accuse(`round ${round}: ${failed} requests ended badly`);
    const sends = came.filter(({ isReceive }) => !isReceive).length;
    if (sends !== sent) stage.accuse(`round ${round}: ${sends} datagrams of ${sent} have ended`);
    for (const [at, { qpNum }] of qps.entries()) {
      const received = came.filter((one) => one.isReceive && one.qpNum === qpNum);
      for (const [from, { qpNums }] of hosts.entries())
        for (const [qp, sender] of qpNums.entries()) {
          const isOwn = from === stage.node;
          const mine = received.filter((one) => one.srcQp === sender && isOwn === this.#isFromHere(one));
          const due = dueTo(this.#place(at), { host: from, qp }, stage.args, round);
          this.#compare(`round ${round}: QP ${at}, from QP ${qp} of host ${from}`, mine, due, round);
        }
      for (const { id } of received) this.#free[at]!.push(id % receivesOfQp);
    }
  }

  /**
   * Whether a datagram comes from a QP of this host: QPs of both have the same numbers, and the header tells the
   * source.
   */
  #isFromHere({ id }: Taken): boolean {
    const { stage, area, hosts } = this.#parts;
    const header = stage.memory.read(area.address + id * slotBytes, grhBytes);
    const { gid } = hosts[stage.node]!;
    // An IPv4 header ends the 40 bytes, after zeros.
    return header[0] === 0
      ? gid.slice(12).every((byte, at) => byte === header[32 + at])
      : gid.every((byte, at) => byte === header[8 + at]);
  }

  #compare(what: string, came: readonly Taken[], due: readonly number[], round: number): void {
    const { stage, area } = this.#parts;
    if (came.length !== due.length)
      stage.accuse(`${what}: ${came.length} datagrams came, ${due.length} were to`);
    for (const [at, number] of came.length === due.length ? due.entries() : []) {
      const { id, byteLen } = came[at]!;
      const { lengthBytes } = stage.args.rounds[round]!.datagrams[number]!;
      const bytes = stage.memory.read(area.address + id * slotBytes + grhBytes, byteLen - grhBytes);
      stage.expectBytes(
        `${what}: datagram ${at}`,
        bytes,
        patternOf(firstOf(stage.args, round) + number, lengthBytes),
      );
    }
  }
}

export const joinedGroups = scene({
  about:
    'datagrams to multicast groups with members at both hosts that join and leave, by every form of both networks',
  sendsToGroups: true,
  draw,
  programs: [host, host],
});
