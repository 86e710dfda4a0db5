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
export type { AccessCount } from './system/serve/access-counters.ts';
export type { Defect, DefectCause } from './system/serve/defect.ts';
export {
  renderServeReport,
  type ServedMachine,
  type ServeOptions,
  type ServeReport,
  serve,
} from './system/serve/index.ts';
export type { ServeListeners } from './system/serve/serve.ts';
export type { ServeStart } from './system/serve/serve-messages.ts';
export type { ServeOrder } from './system/serve/serve-options.ts';
export type * from './system/serve/serve-report.ts';
export type { Cabling } from './system/serve/served-plan.ts';
export type { NotModelled, SlotAccesses } from './system/serve/slot-ledger.ts';
export { renderReport } from './system/text/render.ts';
