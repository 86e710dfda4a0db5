/** Software of datagrams for specs of the data path: QPs, where datagrams go, and the usual scene. */
import { PathMtu, ServiceType } from '../../../abi/qpc.ts';
import type { addressVector } from '../../../abi/wqe.ts';
import type { Initial } from '../../../base/index.ts';
import { type DataPathBench, type DataPathNode, dataPathBench } from './data-path-bench.ts';
import { Cq, PD, Qp, type QpOptions, Region, type SendRequest } from './data-path-verbs.ts';

const QKEY = 0x1111_1111;
const ud = {
  serviceType: ServiceType.UD,
  qkey: QKEY,
  pathMtu: PathMtu.MTU_2048,
  logMaxMessage: 13,
} as const;

/** A datagram QP in RTS, with a CQ of its own. */
export function datagramQp(node: DataPathNode, options: Partial<QpOptions> = {}): { qp: Qp; cq: Cq } {
  const cq = new Cq(node);
  const qp = new Qp(node, { sendCq: cq, ...options, fields: { ...ud, ...options.fields } });
  qp.connect(0, 100, 0);
  return { qp, cq };
}

/** The address vector and Q_Key of a datagram. */
export function datagramTo(
  qpn: number,
  lid: number,
  vector: Initial<typeof addressVector> = {},
  qkey = QKEY,
): Required<Pick<SendRequest, 'datagram'>>['datagram'] {
  return {
    addressVector: { port: 1, pd: PD, destinationLid: lid, ...vector },
    destinationQpn: qpn,
    qkey,
  };
}

export interface DatagramScene {
  bench: DataPathBench;
  a: ReturnType<typeof datagramQp>;
  b: ReturnType<typeof datagramQp>;
  from: Region;
  to: Region;
}

/** A datagram QP and a region at either end. */
export async function datagramScene(
  options: Parameters<typeof dataPathBench>[0] = {},
): Promise<DatagramScene> {
  const bench = await dataPathBench(options);
  const [a, b] = [datagramQp(bench.a), datagramQp(bench.b)];
  const [from, to] = [new Region(bench.a, 4096), new Region(bench.b, 4096, { pageOffset: 1000 })];
  from.fill(7);
  await bench.run(3);
  return { bench, a, b, from, to };
}
