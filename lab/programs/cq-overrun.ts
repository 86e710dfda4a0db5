/** A classic mistake: more completions than CQ entries, none of them polled. The CQ overruns, and its QPs enter the error state. */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  IbvWc,
  openEndpoint,
  type ProgramContext,
  pollCq,
  postSend,
} from '../../browser.ts';

async function open(program: ProgramContext, cqEntries: number) {
  const endpoint = await openEndpoint(program);
  const buffer = await createBuffer(endpoint, 4096);
  const cq = await createCq(endpoint.context, cqEntries);
  const cap = { maxSendWr: 64, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
  const [qp] = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const own = { address: buffer.address, rkey: buffer.region.rkey };
  const { note } = await connectRc(endpoint, [qp!], 'mistake', own);
  return { buffer, cq, qp: qp!, far: note as typeof own };
}

export async function host0(program: ProgramContext): Promise<string> {
  const { buffer, cq, qp, far } = await open(program, 7);
  for (let wrId = 0; wrId < 20; wrId++)
    postSend(qp, {
      wrId,
      sgList: [{ addr: buffer.address, length: 64, lkey: buffer.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_WRITE,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { rdma: { remoteAddr: far.address, rkey: far.rkey } },
    });
  // Long enough for all of them: the program polls only now.
  await program.cpu.sleep(50_000_000);
  const wc = Array.from({ length: 32 }, () => new IbvWc());
  const found = await pollCq(cq, wc.length, wc);
  await program.exchange.put('done', true);
  const text = `${found} of 20 completions were found`;
  program.log(text);
  return text;
}

export async function host1(program: ProgramContext): Promise<void> {
  await open(program, 4);
  await program.exchange.take('done');
}
