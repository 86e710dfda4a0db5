import { expect, it } from 'vitest';
import { coreCode } from './core-code.ts';
import { withEvents } from './core-events.ts';
import { CorePatchError, patchCore } from './core-patch.ts';

it('adds the calls to the published build, whose code stays valid', () => {
  const patched = withEvents(patchCore(coreCode()));
  expect(patched.length).toBeGreaterThan(coreCode().length);
  expect(() => new WebAssembly.Module(patched)).not.toThrow();
});

it('refuses a build without these functions', () => {
  const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  expect(() => withEvents(empty)).toThrow(CorePatchError);
  expect(() => withEvents(empty)).toThrow(/console_log_from_wasm\$ is 0, expected 1/);
});
