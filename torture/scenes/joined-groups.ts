/**
 * Datagrams to multicast groups whose members come and go, at both hosts and several at one port, sent by members and by others at once, some
 * behind a GRH to one host. Each member receives each datagram of its group once, whole and in the order of its sender (IBTA 9.8.3, 10.5;
 * interface sheet 5.6); a sender that blocks loopback receives none of its own, and who has left, never joined or has another Q_Key none at all.
 *
 *     both: join, leave, post receives ─► both: send ─► both: what came is what was due ─► …
 */
import { psPerMs } from '../../base/index.ts';
import {
  barrier,
  createBuffer,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  attachMcast,
  closeDevice,
  createAh,
  createCq,
  createQp,
  deallocPd,
  deregMr,
  destroyAh,
  destroyCq,
  destroyQp,
  detachMcast,
  IBV_GID_TYPE_ROCE_V2,
  IBV_LINK_LAYER_ETHERNET,
  IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
  IBV_QP_QKEY,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  type IbvAh,
  type IbvQp,
  IbvWc,
  modifyQp,
  pollCq,
  postRecv,
  queryGid,
  queryGidTable,
  queryPort,
  VerbsError,
} from '../../userlib/index.ts';
import { qkey, ready } from '../connecting.ts';
import { firstDifference, patternOf } from './observing.ts';
import { post } from './pair.ts';
import type { Scene, SceneDraft, SceneProgram } from './scene.ts';
import { datagramPlan, grhBytes } from './unreliable-pair.ts';

interface Args {
  readonly groups: number;
  /** Of the GID that packets come from, in the order of the port's table. */
  readonly gidPlace: number;
  /** By host. */
  readonly qps: readonly (readonly QpDraft[])[];
  readonly rounds: readonly Round[];
}

interface QpDraft {
  readonly blocksLoopback: boolean;
  readonly isKeyOther: boolean;
}

/** A QP of a host. */
interface Place {
  readonly host: number;
  readonly qp: number;
}

interface Round {
  /** Members by group: each QP is one or not. */
  readonly members: readonly (readonly Place[])[];
  readonly datagrams: readonly Datagram[];
}

interface Datagram {
  readonly from: Place;
  readonly group: number;
  /** To this QP alone, by its number and the host's GID; left out: to the group. */
  readonly to?: Place;
  readonly lengthBytes: number;
}

interface News {
  readonly gid: readonly number[];
  readonly lid: number;
  readonly qpNums: readonly number[];
}

/** Datagrams that a QP receives. */
interface Due {
  readonly number: number;
  readonly lengthBytes: number;
  readonly from: Place;
}

const payloadBytesMax = 1024;
const slotBytes = grhBytes + payloadBytesMax;
const receivesOfQp = 64;
const datagramsMax = 20;
const hopLimit = 64;
const multicastQpn = 0xff_ffff;
const firstGroupLid = 0xc001;
/** Longer than a datagram is on its way once it has left. */
const quietPs = 2 * psPerMs;

function draw(random: Random): SceneDraft {
  const qps = [0, 1].map(() =>
    Array.from({ length: 1 + random.below(4) }, () => ({
      blocksLoopback: random.chance(0.3),
      isKeyOther: random.chance(0.15),
    })),
  );
  const places: Place[] = qps.flatMap((own, host) => own.map((_, qp) => ({ host, qp })));
  const groups = 1 + random.below(3);
  const lengthMax = [8, 300, payloadBytesMax][random.below(3)]!;
  const rounds = Array.from({ length: 2 + random.below(4) }, (): Round => {
    const share = [0.3, 0.6, 1][random.below(3)]!;
    return {
      members: Array.from({ length: groups }, () => places.filter(() => random.chance(share))),
      datagrams: Array.from({ length: random.below(datagramsMax + 1) }, () => ({
        from: places[random.below(places.length)]!,
        group: random.below(groups),
        ...(random.chance(0.2) ? { to: places[random.below(places.length)]! } : {}),
        lengthBytes: random.below(lengthMax + 1),
      })),
    };
  });
  const args: Args = { groups, gidPlace: random.below(4), qps, rounds };
  // Groups of Ethernet have forms of their own: more of these than other scenes have.
  const version = random.chance(0.35) ? 'v1' : 'v2';
  const isEthernet = random.chance(0.5);
  return {
    args: args as unknown as JsonValue,
    ...(isEthernet
      ? { set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': version } }
      : {}),
    hasDrawnHardware: random.chance(0.5),
    climate: 'flawed',
  };
}

/** Number of the first datagram of a round, over all rounds. */
const firstOf = (rounds: readonly Round[], round: number): number =>
  rounds.slice(0, round).reduce((sum, { datagrams }) => sum + datagrams.length, 0);

const isSame = (left: Place, right: Place): boolean => left.host === right.host && left.qp === right.qp;

/** Datagrams that a QP must receive in a round, in order. */
function dueTo(place: Place, { qps, rounds }: Args, round: number): Due[] {
  const { members, datagrams } = rounds[round]!;
  const { blocksLoopback, isKeyOther } = qps[place.host]![place.qp]!;
  const isMember = members.map((all) => all.some((member) => isSame(member, place)));
  return datagrams.flatMap(({ from, group, to, lengthBytes }, at): Due[] => {
    const isMeant = to === undefined ? isMember[group]! : isSame(to, place);
    const isEcho = to === undefined && blocksLoopback && isSame(from, place);
    return isMeant && !isEcho && !isKeyOther
      ? [{ number: firstOf(rounds, round) + at, lengthBytes, from }]
      : [];
  });
}

/** A host's port as datagrams need it. */
interface PortOfGroups {
  readonly isEthernet: boolean;
  readonly isVersion2: boolean;
  readonly gid: Uint8Array;
  readonly gidIndex: number;
  readonly lid: number;
}

async function portOf({ context }: RcEndpoint, gidPlace: number): Promise<PortOfGroups> {
  const { lid, linkLayer } = await queryPort(context, 1);
  if (linkLayer !== IBV_LINK_LAYER_ETHERNET)
    return { isEthernet: false, isVersion2: false, gid: await queryGid(context, 1, 0), gidIndex: 0, lid };
  const entries = await queryGidTable(context, 1);
  const { gid, gidIndex, gidType } = entries[gidPlace % entries.length]!;
  return { isEthernet: true, isVersion2: gidType === IBV_GID_TYPE_ROCE_V2, gid, gidIndex, lid: 0 };
}

const isMapped = (gid: Uint8Array): boolean =>
  gid.subarray(0, 10).every((byte) => byte === 0) && gid[10] === 0xff && gid[11] === 0xff;

/** The GID of a group, of the kind that the port's own GID asks for: of 239.129.2.x as rdma_cm of Linux makes it, or ff12::x. */
function groupGid(port: PortOfGroups, group: number): Uint8Array {
  const last = group + 1;
  const gid = new Uint8Array(16);
  if (!isMapped(port.gid)) gid.set([0xff, 0x12]);
  else if (!port.isVersion2) gid.set([0xff, 0x0e]);
  if (isMapped(port.gid)) gid.set([0xff, 0xff, 239, 129, 2, last], 10);
  else gid[15] = last;
  return gid;
}

/** A host of the scene: it sends and receives. */
async function host(program: ProgramContext, own: number): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { qps: drafts, groups, gidPlace, rounds } = args;
  const endpoint = await openEndpoint(program);
  const port = await portOf(endpoint, gidPlace);
  const cq = await createCq(endpoint.context, 512);
  const qps: IbvQp[] = [];
  for (const { blocksLoopback, isKeyOther } of drafts[own]!) {
    const qp = await createQp(endpoint.pd, {
      sendCq: cq,
      recvCq: cq,
      qpType: IBV_QPT_UD,
      createFlags: blocksLoopback ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0,
      cap: { maxSendWr: datagramsMax, maxRecvWr: receivesOfQp, maxSendSge: 1, maxRecvSge: 1 },
    });
    await ready(qp, datagramPlan, { lid: 0, qpNum: 0, psn: 0 });
    if (isKeyOther) await modifyQp(qp, { qkey: qkey ^ 1 }, IBV_QP_QKEY);
    qps.push(qp);
  }
  const area = await createBuffer(endpoint, (qps.length * receivesOfQp + datagramsMax) * slotBytes);
  const news: News = { gid: [...port.gid], lid: port.lid, qpNums: qps.map(({ qpNum }) => qpNum) };
  await program.exchange.put('groups', news as unknown as JsonValue);
  const there = (await program.exchange.take('groups')) as unknown as News;
  const hosts = own === 0 ? [news, there] : [there, news];
  const handle = (gid: Uint8Array, dlid: number): Promise<IbvAh> =>
    createAh(endpoint.pd, {
      ...{ dlid: port.isEthernet ? 0 : dlid, sl: 0, srcPathBits: 0, portNum: 1, isGlobal: 1 },
      grh: { dgid: gid, flowLabel: 0, sgidIndex: port.gidIndex, hopLimit, trafficClass: 0 },
    });
  const groupGids = Array.from({ length: groups }, (_, group) => groupGid(port, group));
  const toGroups: IbvAh[] = [];
  for (const [group, gid] of groupGids.entries()) toGroups.push(await handle(gid, firstGroupLid + group));
  const toHosts: IbvAh[] = [];
  for (const { gid, lid } of hosts) toHosts.push(await handle(Uint8Array.from(gid), lid));
  const member = new Member({ program, args, own, qps, area, hosts });
  const found: string[] = [];
  for (const [round, { members, datagrams }] of rounds.entries()) {
    for (const [group, gid] of groupGids.entries())
      for (const [at, qp] of qps.entries())
        await settleMembership(qp, gid, firstGroupLid + group, {
          was:
            round > 0 && rounds[round - 1]!.members[group]!.some((one) => isSame(one, { host: own, qp: at })),
          is: members[group]!.some((one) => isSame(one, { host: own, qp: at })),
        });
    found.push(...member.fill());
    await barrier(program, `members of round ${round}`);
    const first = firstOf(rounds, round);
    let sent = 0;
    for (const [at, { from, group, to, lengthBytes }] of datagrams.entries()) {
      if (from.host !== own) continue;
      const address = area.address + (qps.length * receivesOfQp + at) * slotBytes;
      program.memory.write(address, patternOf(first + at, lengthBytes));
      const remoteQpn = to === undefined ? multicastQpn : hosts[to.host]!.qpNums[to.qp]!;
      const ah = to === undefined ? toGroups[group]! : toHosts[to.host]!;
      const error = post(qps[from.qp]!, {
        wrId: sendId,
        sgList: [{ addr: address, length: lengthBytes, lkey: area.region.lkey }],
        numSge: 1,
        opcode: IBV_WR_SEND,
        sendFlags: IBV_SEND_SIGNALED,
        wr: { ud: { ah, remoteQpn, remoteQkey: qkey } },
      });
      if (error !== 0) found.push(`datagram ${at} of round ${round} was refused with ${error}`);
      else sent++;
    }
    await barrier(program, `datagrams of round ${round}`);
    found.push(...(await member.judge(cq, round, sent)));
    await barrier(program, `round ${round} is over`);
  }
  found.push(...(await leaveAll(qps, groupGids, rounds.at(-1)!.members, own)));
  for (const ah of [...toGroups, ...toHosts]) await destroyAh(ah);
  for (const qp of qps) await destroyQp(qp);
  await destroyCq(cq);
  await deregMr(area.region);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
  return found;
}

/** Of sends; receives have their place as theirs. */
const sendId = -1;

async function settleMembership(
  qp: IbvQp,
  gid: Uint8Array,
  lid: number,
  { was, is }: { readonly was: boolean; readonly is: boolean },
): Promise<void> {
  if (is && !was) await attachMcast(qp, gid, lid);
  if (was && !is) await detachMcast(qp, gid, lid);
}

/** A member must leave before it goes (ib_uverbs: EBUSY). @returns what was wrong */
async function leaveAll(
  qps: readonly IbvQp[],
  gids: readonly Uint8Array[],
  members: Round['members'],
  host: number,
): Promise<string[]> {
  const found: string[] = [];
  for (const [at, qp] of qps.entries()) {
    const joined = gids.filter((_, group) => members[group]!.some((one) => isSame(one, { host, qp: at })));
    if (joined.length > 0) {
      const code = await codeOf(() => destroyQp(qp));
      if (code !== 'EBUSY') found.push(`a member of ${joined.length} groups was destroyed: ${code}`);
    }
    for (const gid of joined) await detachMcast(qp, gid, firstGroupLid + gids.indexOf(gid));
    const code = await codeOf(() => detachMcast(qp, gids[0]!, firstGroupLid));
    if (code !== 'EINVAL') found.push(`a QP left a group that it is no member of: ${code}`);
  }
  return found;
}

async function codeOf(call: () => Promise<void>): Promise<string> {
  try {
    await call();
    return 'no error';
  } catch (error) {
    if (error instanceof VerbsError) return error.code;
    throw error;
  }
}

interface MemberParts {
  readonly program: ProgramContext;
  readonly args: Args;
  readonly own: number;
  readonly qps: readonly IbvQp[];
  readonly area: RcBuffer;
  readonly hosts: readonly News[];
}

/** The receives of a host's QPs, and what they bring. */
class Member {
  readonly #parts: MemberParts;
  /** Receives that are not posted, by QP. */
  readonly #free: number[][];

  constructor(parts: MemberParts) {
    this.#parts = parts;
    this.#free = parts.qps.map(() => Array.from({ length: receivesOfQp }, (_, slot) => slot));
  }

  /** Posts all receives. @returns what was wrong */
  fill(): string[] {
    const { qps, area } = this.#parts;
    return qps.flatMap((qp, at) =>
      this.#free[at]!.splice(0).flatMap((slot) => {
        const wrId = at * receivesOfQp + slot;
        const sgList = [{ addr: area.address + wrId * slotBytes, length: slotBytes, lkey: area.region.lkey }];
        const error = postRecv(qp, { wrId, sgList, numSge: 1 }, { wr: null, index: 0 });
        return error === 0 ? [] : [`a receive was refused with ${error}`];
      }),
    );
  }

  /** Holds what a round brought to what was sent in it. @returns what was wrong */
  async judge(cq: Parameters<typeof pollCq>[0], round: number, sent: number): Promise<string[]> {
    const { args, own, qps, hosts } = this.#parts;
    const found: string[] = [];
    const came = await this.#allThatCame(cq);
    const failed = came.filter(({ status }) => status !== IBV_WC_SUCCESS);
    if (failed.length > 0) found.push(`round ${round}: ${failed.length} requests ended badly`);
    const sends = came.filter(({ opcode }) => opcode !== IBV_WC_RECV).length;
    if (sends !== sent) found.push(`round ${round}: ${sends} datagrams of ${sent} have ended`);
    for (const [at, { qpNum }] of qps.entries()) {
      const received = came.filter((wc) => wc.opcode === IBV_WC_RECV && wc.qpNum === qpNum);
      const due = dueTo({ host: own, qp: at }, args, round);
      for (const [from, { qpNums }] of hosts.entries())
        for (const [qp, sender] of qpNums.entries()) {
          const of = (place: Place): boolean => isSame(place, { host: from, qp });
          const mine = received.filter(
            (wc) => wc.srcQp === sender && (from === own) === this.#isFrom(wc, own, at),
          );
          const dueOfSender = due.filter((one) => of(one.from));
          found.push(
            ...this.#compared(
              `round ${round}: QP ${at} of host ${own}, from QP ${qp} of host ${from}`,
              mine,
              dueOfSender,
            ),
          );
        }
      for (const { wrId } of received) this.#free[at]!.push(wrId % receivesOfQp);
    }
    return found;
  }

  /** Whether a datagram is of a QP of this host: QPs of both have the same numbers, and the header says where it comes from. */
  #isFrom({ wrId }: IbvWc, own: number, _qp: number): boolean {
    const { program, area, hosts } = this.#parts;
    const header = program.memory.read(area.address + wrId * slotBytes, grhBytes);
    const gid = Uint8Array.from(hosts[own]!.gid);
    // An IPv4 header ends the 40 bytes, behind zeros.
    return header[0] === 0
      ? gid.subarray(12).every((byte, at) => byte === header[32 + at])
      : gid.every((byte, at) => byte === header[8 + at]);
  }

  #compared(what: string, came: readonly IbvWc[], due: readonly Due[]): string[] {
    if (came.length !== due.length) return [`${what}: ${came.length} datagrams came, ${due.length} were to`];
    return came.flatMap((wc, at) => {
      const { number, lengthBytes } = due[at]!;
      if (wc.byteLen !== grhBytes + lengthBytes)
        return [`${what}: datagram ${at} has ${wc.byteLen} bytes, expected ${grhBytes + lengthBytes}`];
      const { program, area } = this.#parts;
      const bytes = program.memory.read(area.address + wc.wrId * slotBytes + grhBytes, lengthBytes);
      return firstDifference(patternOf(number, lengthBytes), bytes) < 0
        ? []
        : [`${what}: datagram ${at} has other bytes`];
    });
  }

  async #allThatCame(cq: Parameters<typeof pollCq>[0]): Promise<IbvWc[]> {
    const came: IbvWc[] = [];
    for (let quiet = 0; quiet < 2; ) {
      await this.#parts.program.cpu.sleep(quietPs);
      const wcs = Array.from({ length: 32 }, () => new IbvWc());
      const taken = await pollCq(cq, wcs.length, wcs);
      came.push(...wcs.slice(0, taken));
      quiet = taken > 0 ? 0 : quiet + 1;
    }
    return came;
  }
}

export const first = (program: ProgramContext): Promise<JsonValue> => host(program, 0);
export const second = (program: ProgramContext): Promise<JsonValue> => host(program, 1);

const programs: readonly SceneProgram[] = [
  { node: 0, exportName: 'first' },
  { node: 1, exportName: 'second' },
];

export const joinedGroups: Scene = {
  name: 'joined-groups',
  about:
    'datagrams to multicast groups with members at both hosts that join and leave, by every form of both networks',
  module: import.meta.url,
  sendsToGroups: true,
  programs,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
