/** A page's side of the lab's Linux worker, for a test: runs a machine to a step, and returns all that it says. */
import { type Endpoint, proxy, wrap } from 'comlink';
import type { LabLinux, LinuxOrder } from '../../lab/protocol.ts';

export interface LinuxRun {
  readonly consoles: readonly string[];
  readonly commands: string;
  readonly report: string;
}

declare const Worker: new (
  url: string,
  options: { readonly type: 'module' },
) => Endpoint & { terminate(): void };

/** @param order with the step at which it pauses */
async function runLinux(order: LinuxOrder): Promise<LinuxRun> {
  const worker = new Worker('/linux.worker.js', { type: 'module' });
  const linux = wrap<LabLinux>(worker);
  const consoles = Array.from({ length: order.hosts }, () => '');
  let commands = '';
  await new Promise<void>((resolve, reject) => {
    linux
      .run(
        order,
        proxy(({ phase, said, commands: ended }) => {
          for (const [host, text] of said.entries()) consoles[host] += text;
          commands += ended.join('');
          if (phase === 'paused') resolve();
        }),
      )
      .catch(reject);
  });
  const report = await linux.report();
  worker.terminate();
  return { consoles, commands, report };
}

Object.assign(globalThis, { runLinux });
