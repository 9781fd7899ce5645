import * as z from 'zod';

const list = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean),
    );

/** Environment variables of the API. All other settings are in the cluster. */
export const apiConfig = z.object({
  /** Address to listen on; all when empty. */
  BERTH_API_HOST: z.string().optional(),
  /** Port to listen on; 0 takes any, which is logged. */
  BERTH_API_PORT: z.coerce.number().int().min(0).max(65535).default(8080),
  /** Audiences that a bearer token may be issued for, separated by commas. */
  BERTH_AUDIENCES: list('berth').refine((audiences) => audiences.length > 0, 'must name an audience'),
  /** Namespaces to serve, separated by commas; all when empty. Rights are needed in these only. */
  BERTH_NAMESPACES: list(''),
  /** Maximum concurrent requests that wait for a turn, one watch each; further ones are answered 503. */
  BERTH_API_MAX_WAITS: z.coerce.number().int().min(1).default(256),
  BERTH_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
});
export type ApiConfig = z.infer<typeof apiConfig>;
