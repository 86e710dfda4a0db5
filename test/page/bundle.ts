/** The page's worker and all of the model that it uses, as one module for a browser. */
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { browserTarget, disposeSymbols } from '../../build/lab.ts';

/** @throws Error if it contains anything of Node.js */
export async function bundledWorker(): Promise<string> {
  const input = fileURLToPath(new URL('./worker.ts', import.meta.url));
  const isOfNode = (id: string): boolean => /^(node:|(fs|os|path|util|v8|crypto|worker_threads)$)/.test(id);
  const bundle = await rolldown({
    input,
    platform: 'browser',
    external: isOfNode,
    transform: { target: browserTarget },
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'es', banner: disposeSymbols, minify: true });
  await bundle.close();
  const [{ code, imports }, ...more] = output;
  if (imports.length + more.length > 0)
    throw new Error(
      `the page's bundle needs ${[...imports, ...more.map(({ fileName }) => fileName)].join(', ')}`,
    );
  return code;
}
