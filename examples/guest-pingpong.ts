/**
 * The peer of a stock `ibv_rc_pingpong` in a Linux guest: this program runs on a simulated host at the other end of the
 * guest's cable.
 *
 *     npx hca guest --peer examples/guest-pingpong.ts --run 'ibv_rc_pingpong -c -n 200 peer' --peer-args 200
 *
 * The two exchange LID, QP number, PSN and GID over TCP, as text of 52 bytes (libibverbs/examples/rc_pingpong.c). Then
 * the guest sends first, and this program returns each message. On Ethernet the GID is the address, here that of
 * 10.0.0.2 by RoCE v1; index 1 of the guest's table has its counterpart:
 *
 *     npx hca guest --peer examples/guest-pingpong.ts --set hca.capability.linkLayer=ethernet --set hca.capability.roce=v1 \
 *       --run 'ibv_rc_pingpong -c -n 200 -g 1 peer' --peer-args 200
 */

import type { ProgramContext } from '../index.ts';
import * as ibv from '../index.ts';

const size = 4096;
const rxDepth = 500;
const addressBytes = 52;

interface Address extends ibv.PortAddress {
  readonly qpn: number;
  readonly psn: number;
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
/** Without a GID, on InfiniBand, zeros replace it. */
const textOf = ({ lid, qpn, psn, gid = new Array<number>(16).fill(0) }: Address): string =>
  `${hex(lid, 4)}:${hex(qpn, 6)}:${hex(psn, 6)}:${gid.map((byte) => hex(byte, 2)).join('')}\0`;

function addressIn(bytes: Uint8Array): Address {
  const [lid = '', qpn = '', psn = '', gid = ''] = new TextDecoder().decode(bytes).split(':');
  const numberOf = (text: string): number => Number.parseInt(text, 16);
  const address = { lid: numberOf(lid), qpn: numberOf(qpn), psn: numberOf(psn) };
  return { ...address, gid: (gid.match(/[\da-f]{2}/g) ?? []).map(numberOf) };
}

/** Returns the path by LIDs, or on Ethernet by GIDs, with this port's GID at its table index. */
function pathTo({ sgidIndex }: ibv.PeerAddress, { lid, gid = [] }: Address): ibv.AhAttr {
  const path = { sl: 0, srcPathBits: 0, portNum: 1 };
  if (sgidIndex === undefined) return { ...path, dlid: lid, isGlobal: 0 };
  const grh = { dgid: Uint8Array.from(gid), sgidIndex, flowLabel: 0, hopLimit: 1, trafficClass: 0 };
  return { ...path, dlid: 0, isGlobal: 1, grh };
}

/** Brings a QP from INIT to RTS, connected to `peer`, as the guest's program does with its own. */
async function connect(qp: ibv.IbvQp, psn: number, own: ibv.PeerAddress, peer: Address): Promise<void> {
  await ibv.modifyQp(
    qp,
    {
      qpState: ibv.IBV_QPS_RTR,
      pathMtu: ibv.IBV_MTU_1024,
      destQpNum: peer.qpn,
      rqPsn: peer.psn,
      maxDestRdAtomic: 1,
      minRnrTimer: 12,
      ahAttr: pathTo(own, peer),
    },
    ibv.IBV_QP_STATE |
      ibv.IBV_QP_AV |
      ibv.IBV_QP_PATH_MTU |
      ibv.IBV_QP_DEST_QPN |
      ibv.IBV_QP_RQ_PSN |
      ibv.IBV_QP_MAX_DEST_RD_ATOMIC |
      ibv.IBV_QP_MIN_RNR_TIMER,
  );
  await ibv.modifyQp(
    qp,
    { qpState: ibv.IBV_QPS_RTS, timeout: 14, retryCnt: 7, rnrRetry: 7, sqPsn: psn, maxRdAtomic: 1 },
    ibv.IBV_QP_STATE |
      ibv.IBV_QP_TIMEOUT |
      ibv.IBV_QP_RETRY_CNT |
      ibv.IBV_QP_RNR_RETRY |
      ibv.IBV_QP_SQ_PSN |
      ibv.IBV_QP_MAX_QP_RD_ATOMIC,
  );
}

/** Payload of `ibv_rc_pingpong -c`: 0x7b, and 0 at the start of each page of its buffer. */
const isAsSent = (byte: number, at: number): boolean => byte === (at % 4096 === 0 ? 0 : 0x7b);

/** @returns number of messages received and returned */
export default async function pingpong(program: ProgramContext): Promise<number> {
  const { memory, random, args } = program;
  const iterations = Number(args ?? 1000);
  const guest = await ibv.acceptGuest(program);
  // Opens the first device; by now the guest's driver is loaded, so the port becomes active.
  const { context, pd, own } = await ibv.openEndpoint(program);
  const addr = memory.map(size);
  const mr = await ibv.regMr(pd, addr, size, ibv.IBV_ACCESS_LOCAL_WRITE);
  const cq = await ibv.createCq(context, rxDepth + 1);
  const cap = { maxSendWr: 1, maxRecvWr: rxDepth, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.createQp(pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
  await ibv.modifyQp(
    qp,
    { qpState: ibv.IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 },
    ibv.IBV_QP_STATE | ibv.IBV_QP_PKEY_INDEX | ibv.IBV_QP_PORT | ibv.IBV_QP_ACCESS_FLAGS,
  );
  const list = { sgList: [{ addr, length: size, lkey: mr.lkey }], numSge: 1 };
  for (let posted = 0; posted < rxDepth; posted++) ibv.postRecv(qp, { wrId: 1, ...list });

  const psn = random.below(1 << 24);
  await connect(qp, psn, own, addressIn(await guest.readAll(addressBytes)));
  await guest.write(new TextEncoder().encode(textOf({ ...own, qpn: qp.qpNum, psn })));
  await guest.readAll('done\0'.length);

  const send = { wrId: 2, opcode: ibv.IBV_WR_SEND, sendFlags: ibv.IBV_SEND_SIGNALED, ...list };
  const wc = [new ibv.IbvWc(), new ibv.IbvWc()];
  let [received, sent] = [0, 0];
  while (received < iterations || sent < iterations) {
    const found = await ibv.spinCq(cq, wc.length, wc);
    for (const { status, opcode } of wc.slice(0, found)) {
      if (status !== ibv.IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
      if (opcode !== ibv.IBV_WC_RECV) {
        sent++;
        continue;
      }
      received++;
      if (!memory.read(addr, size).every(isAsSent)) throw new Error(`message ${received} holds other bytes`);
      ibv.postRecv(qp, { wrId: 1, ...list });
      ibv.postSend(qp, send);
    }
  }
  await guest.end();
  return received;
}
