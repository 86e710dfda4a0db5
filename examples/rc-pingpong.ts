/**
 * An RC ping-pong, like libibverbs' ibv_rc_pingpong: two hosts alternately send each other a message.
 *
 *     node examples/rc-pingpong.ts
 */
import * as ibv from '../index.ts';
import { Machine, type MachineOptions, type ProgramContext, type Report, renderReport } from '../index.ts';

const size = 4096;
const rxDepth = 500;

interface Destination {
  readonly lid: number;
  /** 16 bytes, and the index of the host's own GID in the port's table: on Ethernet, GIDs replace LIDs. */
  readonly gid: readonly number[];
  readonly qpn: number;
  readonly psn: number;
}

/** Address of `dest`: by its LID, or by its GID, with the host's own at `sgidIndex`. */
function pathTo(dest: Destination, sgidIndex: number): ibv.AhAttr {
  const grh = { dgid: Uint8Array.from(dest.gid), flowLabel: 0, sgidIndex, hopLimit: 64, trafficClass: 0 };
  return { dlid: dest.lid, sl: 0, srcPathBits: 0, isGlobal: dest.lid === 0 ? 1 : 0, grh, portNum: 1 };
}

/** Brings a QP from INIT to RTS, connected to `dest`. */
async function connect(qp: ibv.IbvQp, myPsn: number, dest: Destination, sgidIndex: number): Promise<void> {
  await ibv.modifyQp(
    qp,
    {
      qpState: ibv.IBV_QPS_RTR,
      pathMtu: ibv.IBV_MTU_1024,
      destQpNum: dest.qpn,
      rqPsn: dest.psn,
      maxDestRdAtomic: 1,
      minRnrTimer: 12,
      ahAttr: pathTo(dest, sgidIndex),
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
    { qpState: ibv.IBV_QPS_RTS, timeout: 14, retryCnt: 7, rnrRetry: 7, sqPsn: myPsn, maxRdAtomic: 1 },
    ibv.IBV_QP_STATE |
      ibv.IBV_QP_TIMEOUT |
      ibv.IBV_QP_RETRY_CNT |
      ibv.IBV_QP_RNR_RETRY |
      ibv.IBV_QP_SQ_PSN |
      ibv.IBV_QP_MAX_QP_RD_ATOMIC,
  );
}

/** Runs on both hosts; host 0 sends first. @returns microseconds of one round trip */
async function pingpong({
  node,
  cpu,
  memory,
  verbs,
  exchange,
  random,
  args,
}: ProgramContext): Promise<number> {
  const iterations = Number(args);
  const context = await ibv.openDevice(ibv.getDeviceList(verbs)[0]!);
  const pd = await ibv.allocPd(context);
  const buffer = memory.map(size);
  const mr = await ibv.regMr(pd, buffer, size, ibv.IBV_ACCESS_LOCAL_WRITE);
  const cq = await ibv.createCq(context, rxDepth + 1);
  const cap = { maxSendWr: 1, maxRecvWr: rxDepth, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.createQp(pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
  await ibv.modifyQp(
    qp,
    { qpState: ibv.IBV_QPS_INIT, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 },
    ibv.IBV_QP_STATE | ibv.IBV_QP_PKEY_INDEX | ibv.IBV_QP_PORT | ibv.IBV_QP_ACCESS_FLAGS,
  );
  const list = [{ addr: buffer, length: size, lkey: mr.lkey }];
  for (let posted = 0; posted < rxDepth; posted++) ibv.postRecv(qp, { wrId: 1, sgList: list, numSge: 1 });

  const { lid } = await ibv.queryPort(context, 1);
  // The last GID is the newest: on Ethernet that of the IPv4 address by RoCE v2, if the card supports it.
  const { gid, gidIndex } = (await ibv.queryGidTable(context, 1)).at(-1)!;
  const psn = random.below(1 << 24);
  await exchange.put('destination', { lid, gid: [...gid], qpn: qp.qpNum, psn });
  await connect(qp, psn, await exchange.take<Destination>('destination'), gidIndex);
  await exchange.put('ready', true);
  await exchange.take('ready');

  const send = {
    wrId: 2,
    sgList: list,
    numSge: 1,
    opcode: ibv.IBV_WR_SEND,
    sendFlags: ibv.IBV_SEND_SIGNALED,
  };
  const wc = [new ibv.IbvWc(), new ibv.IbvWc()];
  const startPs = cpu.localPs;
  let [received, sent] = [0, 0];
  if (node === 0) ibv.postSend(qp, send);
  while (received < iterations || sent < iterations) {
    const found = await ibv.spinCq(cq, wc.length, wc);
    for (const { status, opcode } of wc.slice(0, found)) {
      if (status !== ibv.IBV_WC_SUCCESS) throw new Error(`completion with status ${status}`);
      if (opcode !== ibv.IBV_WC_RECV) sent++;
      else {
        received++;
        ibv.postRecv(qp, { wrId: 1, sgList: list, numSge: 1 });
        if (node === 1 || received < iterations) ibv.postSend(qp, send);
      }
    }
  }
  return (cpu.localPs - startPs) / iterations / 1e6;
}

export async function main(
  iterations = 1000,
  options: MachineOptions = {},
): Promise<{ roundTripUs: number; report: Report }> {
  await using machine = await Machine.create(options);
  for (const node of [0, 1]) await machine.load({ node, run: pingpong, args: iterations });
  await machine.run();
  const [roundTripUs] = (await machine.results()) as number[];
  return { roundTripUs: roundTripUs!, report: await machine.report() };
}

if (import.meta.main) {
  const { roundTripUs, report } = await main();
  console.log(`${renderReport(report)}\n1000 iters of ${size} bytes: ${roundTripUs.toFixed(2)} usec/iter`);
}
