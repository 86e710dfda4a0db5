/**
 * Links: the values that peers publish to each other at the beginning and at each turn, and the transitions of QPs to
 * RTS.
 */
import { psPerMs } from '../../base/index.ts';
import { handleTo, type PortAddress } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { ready } from '../connecting.ts';
import { isCurrent, type LinkEnd, peerOfQp, turnOfQp } from '../story.ts';
import { type PeerNews, type Session, wrongKey } from './session.ts';
import type { Waiting } from './waiting.ts';

type Peer = NonNullable<ReturnType<typeof peerOfQp>>;

export class Links {
  readonly #session: Session;
  readonly #waiting: Waiting;

  constructor(session: Session, waiting: Waiting) {
    this.#session = session;
    this.#waiting = waiting;
  }

  /** The port, when it has become active, or after 200 ms. */
  async activePort(context: ibv.IbvContext): Promise<ibv.PortAttr> {
    for (let waits = 0; ; waits++) {
      const port = await ibv.queryPort(context, 1);
      const isReady =
        port.linkLayer === ibv.IBV_LINK_LAYER_ETHERNET ? port.state === ibv.IBV_PORT_ACTIVE : port.lid !== 0;
      if (isReady || waits > 200) return port;
      await this.#session.program.cpu.sleep(psPerMs);
    }
  }

  #current(turn: number): { readonly index: number; readonly peer: Peer }[] {
    const { plan, story, index: program } = this.#session;
    return plan.qps.flatMap((_, index) => {
      const peer = peerOfQp(story, program, index);
      return peer !== undefined && isCurrent(plan, index, turn) ? [{ index, peer }] : [];
    });
  }

  /** Publishes the present QPs and areas to the peers, and connects the QPs that are new at this turn. */
  async connect(turn: number): Promise<void> {
    const { program, index: own, areas: open, oldKeys, qps } = this.#session;
    const links = this.#current(turn);
    const areas = open.map(
      ({ address, mr }, area) => [address, mr?.rkey ?? oldKeys.get(area) ?? wrongKey] as const,
    );
    for (const { index, peer } of links) {
      const { qp } = qps[index]!;
      const news = qp === undefined ? null : { ...(await this.#address(peer.link)), qpNum: qp.qpNum, areas };
      if (peer.program === own) this.#met(peer.qp, news);
      else await program.exchange.put(mailboxOf(peer.link, turn, peer), news);
    }
    for (const { index, peer } of links) {
      if (peer.program !== own) this.#met(index, await this.#newsOf(peer, index, turn));
      await this.#bringUp(index, peer, turn);
    }
  }

  async #newsOf({ link }: Peer, qp: number, turn: number): Promise<PeerNews | null> {
    const { program, index } = this.#session;
    const box = mailboxOf(link, turn, { program: index, qp });
    let news: PeerNews | null | undefined;
    await this.#waiting.untilPeer(`news of link ${link}`, async () => {
      news = await program.exchange.poll<PeerNews | null>(box);
      return news !== undefined;
    });
    return news ?? null;
  }

  #met(index: number, news: PeerNews | null): void {
    const open = this.#session.qps[index]!;
    open.formerPeer = open.peer ?? open.formerPeer;
    open.peer = news ?? undefined;
  }

  async #bringUp(index: number, peer: Peer, turn: number): Promise<void> {
    const { qps, story, pds } = this.#session;
    const open = qps[index]!;
    const { qp, plan, peer: there } = open;
    if (qp === undefined || there === undefined || turnOfQp(plan) !== turn) return;
    const { psn } = story.programs[peer.program]!.qps[peer.qp]!;
    const { gidIndex: sgidIndex } = story.links[peer.link]!;
    const { lid, gid, qpNum } = there;
    const found = { lid, ...(gid === undefined || sgidIndex === undefined ? {} : { gid, sgidIndex }) };
    await ready(qp, plan, { ...found, qpNum, psn });
    if (plan.transport === 'UD') open.ah = await handleTo(pds[0]!, found);
  }

  /** Returns the address by which the QPs of a link find the port: its LID, or a GID. */
  async #address(link: number): Promise<PortAddress> {
    const { port, context, story } = this.#session;
    const { lid } = port!;
    const { gidIndex } = story.links[link]!;
    return gidIndex === undefined ? { lid } : { lid, gid: [...(await ibv.queryGid(context!, 1, gidIndex))] };
  }

  /** Peers that wait for news of a link at this turn get none. */
  async refuse(turn: number): Promise<void> {
    const { program, index } = this.#session;
    for (const { peer } of this.#current(turn))
      if (peer.program !== index) await program.exchange.put(mailboxOf(peer.link, turn, peer), null);
  }
}

const mailboxOf = (link: number, turn: number, end: LinkEnd): string =>
  `link ${link} at turn ${turn} to ${end.program}.${end.qp}`;
