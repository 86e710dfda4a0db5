/**
 * The part of the WebAssembly JavaScript interface (W3C, 2.0) that the PC uses: neither the library of the language nor Node's
 * types declare it, and those of browsers would bring a thousand other names.
 */
declare namespace WebAssembly {
  type ExportValue = unknown;
  type ModuleImports = Record<string, unknown>;
  type Imports = Record<string, ModuleImports>;
  type Exports = Record<string, ExportValue>;
  class Memory {
    constructor(limits: { readonly initial: number });
    readonly buffer: ArrayBuffer;
  }
  class Table {
    set(index: number, value: unknown): void;
  }
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
    static imports(module: Module): { readonly name: string; readonly kind: string }[];
    static customSections(module: Module, name: string): ArrayBuffer[];
  }
  class Instance {
    constructor(module: Module, imports: Imports);
    readonly exports: Exports;
  }
  function instantiate(
    bytes: Uint8Array<ArrayBuffer>,
    imports: Imports,
  ): Promise<{ readonly module: Module; readonly instance: Instance }>;
}
