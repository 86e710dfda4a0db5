import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { NativeUnavailableError, nativeUnavailableReason } from './library.ts';
import {
  controlBytesOf,
  controlHeader,
  iovec,
  messageHeader,
  pollEntry,
  socketAddress,
} from './structures.ts';

/** Runs a line of code in a separate process, where `library` is the module; returns its output. */
function printed(prelude: string, code: string): string {
  const path = JSON.stringify(join(import.meta.dirname, 'library.ts'));
  const source = `${prelude}; const library = await import(${path}); ${code}`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
  });
  return stdout + stderr;
}

const notify = 'console.log(library.nativeUnavailableReason())';

describe('native calls', () => {
  it('report in one line the required platform', () => {
    const prelude = "Object.defineProperty(process, 'platform', { value: 'darwin' })";
    const line = printed(prelude, notify).trim();
    expect(line).toContain('needs Linux on x64 or arm64');
    expect(line).toContain('darwin');
    expect(line.split('\n')).toHaveLength(1);
  });

  it('report in one line what to install if koffi is missing', () => {
    const prelude = `import { registerHooks } from 'node:module';
      registerHooks({ resolve(name, context, next) {
        if (name === 'koffi') throw new Error("Cannot find module 'koffi'");
        return next(name, context);
      } })`;
    const line = printed(prelude, notify).trim();
    expect(line).toBe(
      "serving a guest needs the optional package koffi: run `npm install koffi` (Cannot find module 'koffi')",
    );
  });

  it('cost nothing until they are used: importing the folder loads no koffi', () => {
    const index = JSON.stringify(join(import.meta.dirname, '../index.ts'));
    const code = `await import(${index}); console.log(Object.keys((await import('node:module')).default._cache).length)`;
    expect(printed('', code).trim()).toBe('0');
  });

  it('fail with an error that the command line shows as bad input', () => {
    const error = new NativeUnavailableError('koffi', 'gone', 'there', 'install it');
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.message).toBe('install it');
  });

  it('have structures of the sizes that C has on LP64', () => {
    expect(
      [messageHeader, iovec, controlHeader, pollEntry, socketAddress].map(({ sizeBytes }) => sizeBytes),
    ).toEqual([56, 16, 16, 8, 110]);
    // CMSG_SPACE(n * sizeof(int)) for n = 1, 2, 3, 16
    expect([1, 2, 3, 16].map(controlBytesOf)).toEqual([24, 24, 32, 80]);
  });

  it('are available on Linux on x64 and arm64: their users are skipped elsewhere, but never here', ({
    skip,
  }) => {
    skip(process.platform !== 'linux' || !/^(x64|arm64)$/.test(process.arch), 'this is another platform');
    expect(nativeUnavailableReason()).toBeUndefined();
  });
});
