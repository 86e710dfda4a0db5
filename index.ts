/**
 * hca-emulator as a library: a machine of hosts and RDMA adapters in simulated time, programs for it, and the verbs
 * that programs speak.
 *
 *     import { Machine, getDeviceList, openDevice } from 'hca-emulator';
 *
 *     await using machine = await Machine.create();
 *     await machine.load({ node: 0, run: async ({ verbs }) => { await openDevice(getDeviceList(verbs)[0]!); } });
 *     await machine.run();
 *     console.log((await machine.report()).checks.balanced);
 */

import './runtime/node.ts';

export * from './browser.ts';
export { renderReport } from './explain/text/render.ts';
export {
  type AccessCount,
  type Cabling,
  type Defect,
  type DefectCause,
  type NotModelled,
  type PeerOptions,
  type PeerOrder,
  type PeerState,
  renderServeReport,
  type ServedMachine,
  type ServeListeners,
  type ServeOptions,
  type ServeOrder,
  type ServeReport,
  type ServeStart,
  type SlotAccesses,
  serve,
} from './guests/serve/index.ts';
export type * from './guests/serve/serve-report.ts';
