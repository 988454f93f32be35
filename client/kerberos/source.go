package kerberos

import (
	"errors"
	"fmt"
	"strings"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is a ticket for one server.
type ticket struct {
	ticket   messages.Ticket
	key      types.EncryptionKey
	realm    string // of the client
	name     types.PrincipalName
	from, to time.Time
}

// source fetches tickets. It asks KDCs, for which gokrb5 knows no context.
type source interface {
	who() string
	fetch(spn string) (*ticket, error)
}

// splitPrincipal splits NAME@REALM.
func splitPrincipal(cfg *config.Config, principal string) (name, realm string, err error) {
	name, realm, found := strings.Cut(principal, "@")
	if !found {
		realm = cfg.LibDefaults.DefaultRealm
	}
	if name == "" || realm == "" {
		return "", "", fmt.Errorf("principal %q has no name or no realm, and the configuration has no default_realm", principal)
	}
	return name, realm, nil
}

// knowsKDC reports what would be "no KDCs defined" at the first login.
func knowsKDC(cfg *config.Config, realm string) error {
	if cfg.LibDefaults.DNSLookupKDC {
		return nil
	}
	for _, r := range cfg.Realms {
		if r.Realm == realm && len(r.KDC) > 0 {
			return nil
		}
	}
	return fmt.Errorf("the configuration has no KDC of realm %s (files that it includes are not read)", realm)
}

type keytabSource struct {
	cfg               *config.Config
	name, realm, file string
}

func newKeytabSource(cfg *config.Config, principal, file string) (source, error) {
	name, realm, err := splitPrincipal(cfg, principal)
	if err != nil {
		return nil, err
	}
	if err := knowsKDC(cfg, realm); err != nil {
		return nil, err
	}
	s := &keytabSource{cfg, name, realm, file}
	_, err = s.keys()
	return s, err
}

func (s *keytabSource) who() string { return s.name + "@" + s.realm }

// keys reads the file, which may have new keys.
func (s *keytabSource) keys() (*keytab.Keytab, error) {
	kt, err := keytab.Load(s.file)
	if err != nil {
		return nil, fmt.Errorf("keytab %s: %w", s.file, err)
	}
	for _, e := range kt.Entries {
		if strings.Join(e.Principal.Components, "/") == s.name && e.Principal.Realm == s.realm {
			return kt, nil
		}
	}
	return nil, fmt.Errorf("keytab %s: it has no key of %s", s.file, s.who())
}

func (s *keytabSource) fetch(spn string) (*ticket, error) {
	kt, err := s.keys()
	if err != nil {
		return nil, err
	}
	return loggedIn(krb.NewWithKeytab(s.name, s.realm, kt, s.cfg, krb.DisablePAFXFAST(true)), spn)
}

type passwordSource struct {
	cfg                   *config.Config
	name, realm, password string
}

func newPasswordSource(cfg *config.Config, principal, password string) (source, error) {
	name, realm, err := splitPrincipal(cfg, principal)
	if err == nil {
		err = knowsKDC(cfg, realm)
	}
	return &passwordSource{cfg, name, realm, password}, err
}

func (s *passwordSource) who() string { return s.name + "@" + s.realm }

func (s *passwordSource) fetch(spn string) (*ticket, error) {
	return loggedIn(krb.NewWithPassword(s.name, s.realm, s.password, s.cfg, krb.DisablePAFXFAST(true)), spn)
}

// loggedIn gets a ticket with a new ticket of the client.
func loggedIn(cl *krb.Client, spn string) (*ticket, error) {
	defer cl.Destroy()
	realm, name := cl.Credentials.Domain(), cl.Credentials.CName()
	ask, err := messages.NewASReqForTGT(realm, cl.Config, name)
	if err != nil {
		return nil, err
	}
	got, err := cl.ASExchange(realm, ask, 0)
	if err != nil {
		return nil, &kdcError{err: err, client: true}
	}
	return served(cl, spn, got.Ticket, got.DecryptedEncPart.Key)
}

// served gets a ticket for a server with the client's own ticket.
func served(cl *krb.Client, spn string, tgt messages.Ticket, key types.EncryptionKey) (*ticket, error) {
	own := cl.Credentials.Domain()
	service, realm, found := strings.Cut(spn, "@")
	name := types.NewPrincipalName(nametype.KRB_NT_SRV_INST, service)
	if !found {
		realm = cl.Config.ResolveRealm(name.NameString[len(name.NameString)-1])
	}
	if realm == "" {
		realm = own
	}
	if realm != own {
		cross := types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+realm)
		_, got, err := cl.TGSREQGenerateAndExchange(cross, own, tgt, key, false)
		if err != nil {
			return nil, &kdcError{err: err}
		}
		tgt, key = got.Ticket, got.DecryptedEncPart.Key
	}
	_, got, err := cl.TGSREQGenerateAndExchange(name, realm, tgt, key, false)
	if err != nil {
		return nil, &kdcError{err: err}
	}
	part := got.DecryptedEncPart
	from := part.StartTime
	if from.IsZero() {
		from = part.AuthTime
	}
	return &ticket{got.Ticket, part.Key, own, cl.Credentials.CName(), from, part.EndTime}, nil
}

type cacheSource struct {
	cfg  *config.Config
	file string
	name string
}

func newCacheSource(cfg *config.Config, file string) (source, error) {
	s := &cacheSource{cfg: cfg, file: file}
	cc, err := s.load()
	if err != nil {
		return nil, err
	}
	s.name = cc.GetClientPrincipalName().PrincipalNameString() + "@" + cc.GetClientRealm()
	return s, nil
}

func (s *cacheSource) who() string { return s.name }

func (s *cacheSource) load() (cc *credentials.CCache, err error) {
	defer func() {
		if r := recover(); r != nil { // gokrb5 takes a file for whole
			err = fmt.Errorf("credential cache %s: it cannot be read: %v", s.file, r)
		}
	}()
	cc, err = credentials.LoadCCache(s.file)
	if err != nil {
		return nil, fmt.Errorf("credential cache %s: %w", s.file, err)
	}
	return cc, nil
}

func (s *cacheSource) fetch(spn string) (*ticket, error) {
	cc, err := s.load()
	if err != nil {
		return nil, err
	}
	realm := cc.GetClientRealm()
	cred, found := cc.GetEntry(types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+realm))
	if !found {
		return nil, fmt.Errorf("credential cache %s: it has no ticket of %s", s.file, s.name)
	}
	if !time.Now().Before(cred.EndTime) {
		return nil, fmt.Errorf("credential cache %s: its ticket has ended at %s; somebody has to renew it", s.file, cred.EndTime.UTC().Format(time.RFC3339))
	}
	cl, err := krb.NewFromCCache(cc, s.cfg, krb.DisablePAFXFAST(true))
	if err != nil {
		return nil, fmt.Errorf("credential cache %s: %w", s.file, err)
	}
	defer cl.Destroy()
	var tgt messages.Ticket
	if err := tgt.Unmarshal(cred.Ticket); err != nil {
		return nil, errors.New("credential cache " + s.file + ": its ticket cannot be read")
	}
	return served(cl, spn, tgt, cred.Key)
}
